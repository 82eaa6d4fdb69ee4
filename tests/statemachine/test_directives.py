import attrs
import pytest

from disque_trio.statemachine.base import CommandError
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.directives import (
    BAD_DIRECTIVE,
    DIRECTIVES,
    get,
    parse_line,
    set_value,
)
from disque_trio.statemachine.pattern import matches
from disque_trio.statemachine.values import ConfigError, decode, encode, quoted, size_written

NO_MEMORY = "You need to specify a memory limit greater than zero, such as 'maxmemory 1gb'"
BAD_FILE_NAME = (
    "Invalid appendfilename value: 'a/b' is not a bare file name; the directory is that of 'dir'"
)
BAD_SECRET = (
    "Invalid cluster-secret value: a shared secret has 16 to 512 bytes; "
    "`openssl rand -hex 32` makes one"
)
BAD_CLASS = (
    "Invalid client-output-buffer-limit value: 'replica' is no class of clients; "
    "the only one is 'normal'"
)

DEFAULTS = [
    ("requirepass", ""),
    ("unixsocket", ""),
    ("logfile", ""),
    ("pidfile", "/var/run/disque.pid"),
    ("maxmemory", "1073741824"),
    ("maxmemory-samples", "5"),
    ("timeout", "0"),
    ("auto-aof-rewrite-percentage", "100"),
    ("auto-aof-rewrite-min-size", "67108864"),
    ("slowlog-log-slower-than", "10000"),
    ("latency-monitor-threshold", "0"),
    ("slowlog-max-len", "128"),
    ("port", "7711"),
    ("tcp-backlog", "511"),
    ("databases", "16"),
    ("maxclients", "10000"),
    ("watchdog-period", "0"),
    ("hz", "10"),
    ("cluster-node-timeout", "15000"),
    ("tcp-keepalive", "no"),
    ("no-appendfsync-on-rewrite", "no"),
    ("daemonize", "no"),
    ("activerehashing", "yes"),
    ("aof-rewrite-incremental-fsync", "yes"),
    ("aof-load-truncated", "yes"),
    ("aof-enqueue-jobs-once", "no"),
    ("maxmemory-policy", "acks"),
    ("loglevel", "notice"),
    ("appendfsync", "everysec"),
    ("syslog-facility", "local0"),
    ("appendonly", "no"),
    ("dir", ""),
    ("client-output-buffer-limit", "normal 0 0 0"),
    ("unixsocketperm", "0"),
    ("bind", ""),
    ("delivery-lease", "yes"),
    ("log-format", "human"),
    ("bus-send-buffer", "33554432"),
    ("trace-file", ""),
    ("spill-directory", ""),
    ("aof-format", "framed"),
    ("requirepass-file", ""),
    ("cluster-secret-file", ""),
    ("protected-mode", "yes"),
    ("auth-timeout", "10"),
    ("unauthenticated-clients", "1000"),
    ("client-query-buffer-limit", "1073741824"),
    ("proto-max-bulk-len", "536870912"),
    ("replica-repair-after", "600"),
    ("workers", "1"),
    ("tls-port", "0"),
    ("tls-cert-file", ""),
    ("tls-key-file", ""),
    ("tls-ca-cert-file", ""),
    ("tls-cluster-ca-cert-file", ""),
    ("tls-auth-clients", "yes"),
    ("tls-cluster", "no"),
]

REFUSED_BY_SET = [
    "unixsocket",
    "logfile",
    "pidfile",
    "port",
    "tcp-backlog",
    "databases",
    "no-appendfsync-on-rewrite",
    "daemonize",
    "syslog-facility",
    "unixsocketperm",
    "bind",
    "log-format",
    "trace-file",
    "spill-directory",
    "aof-format",
    "requirepass-file",
    "cluster-secret-file",
    "cluster-secret",
    "workers",
    "tls-port",
    "tls-cluster",
    "tls-key-file-pass",
    "appendfilename",
    "cluster-config-file",
    "rename-command",
    "syslog-enabled",
    "syslog-ident",
    "include",
    "nonsense",
]


def value_of(config: Config, name: str) -> str:
    [_, value] = get(config, name.encode())
    return value.decode()


def test_get_shows_every_default_in_the_originals_order_and_then_ours() -> None:
    flat = [text.decode() for text in get(Config(), b"*")]

    assert list(zip(flat[::2], flat[1::2], strict=True)) == DEFAULTS


def test_get_shows_only_what_the_pattern_matches() -> None:
    pairs = get(Config(), b"maxmemory-[ps]*")

    assert pairs == [b"maxmemory-samples", b"5", b"maxmemory-policy", b"acks"]


def test_get_minds_case() -> None:
    assert get(Config(), b"PORT") == []


def test_get_hides_what_only_a_file_says() -> None:
    assert get(Config(), b"appendfilename") == []


def test_every_directive_has_its_field() -> None:
    fields = {directive.field for directive in DIRECTIVES}

    assert fields == {field.name for field in attrs.fields(Config)}


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("requirepass", "secret", "secret"),
        ("requirepass", "", ""),
        ("maxmemory", "1gb", "1073741824"),
        ("maxmemory", "2M", "2000000"),
        ("maxmemory", "100b", "100"),
        ("maxmemory-samples", "1", "1"),
        ("timeout", "+30", "30"),
        ("timeout", "", "0"),
        ("auto-aof-rewrite-percentage", "0", "0"),
        ("auto-aof-rewrite-min-size", "1000", "1000"),
        ("slowlog-log-slower-than", "0", "0"),
        ("latency-monitor-threshold", "100", "100"),
        ("slowlog-max-len", "0", "0"),
        ("maxclients", "1", "1"),
        ("watchdog-period", "500", "500"),
        ("hz", "1000", "500"),
        ("hz", "0", "1"),
        ("cluster-node-timeout", "0", "0"),
        ("tcp-keepalive", "YES", "yes"),
        ("tcp-keepalive", "no", "no"),
        ("activerehashing", "No", "no"),
        ("aof-enqueue-jobs-once", "no", "no"),
        ("appendonly", "no", "no"),
        ("maxmemory-policy", "NOEVICTION", "noeviction"),
        ("loglevel", "Debug", "debug"),
        ("appendfsync", "always", "always"),
        ("dir", "/srv/queue", "/srv/queue"),
        ("client-output-buffer-limit", "normal 1mb 10 20", "normal 1048576 10 20"),
        ("client-output-buffer-limit", "normal 1 1 1 NORMAL 2 2 2", "normal 2 2 2"),
        ("delivery-lease", "no", "no"),
        ("bus-send-buffer", "1mb", "1048576"),
        ("TimeOut", "7", "7"),
        ("protected-mode", "no", "no"),
        ("auth-timeout", "0", "0"),
        ("tls-cert-file", "a.pem", "a.pem"),
        ("tls-auth-clients", "Optional", "optional"),
        ("proto-max-bulk-len", "4kb", "4096"),
        ("client-query-buffer-limit", "1mb", "1048576"),
    ],
)
def test_set_takes(name: str, value: str, shown: str) -> None:
    changed = set_value(Config(), name.encode(), value.encode())

    assert value_of(changed, name.lower()) == shown


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("proto-max-bulk-len", "4095"),
        ("proto-max-bulk-len", "513mb"),
        ("client-query-buffer-limit", "0"),
        ("unauthenticated-clients", "0"),
        ("tls-auth-clients", "maybe"),
        ("maxmemory", "0"),
        ("maxmemory", "-1"),
        ("maxmemory", "lots"),
        ("maxmemory", "99999999999gb"),
        ("maxmemory-samples", "0"),
        ("timeout", "-1"),
        ("timeout", " 1"),
        ("timeout", "1_000"),
        ("timeout", "9223372036854775808"),
        ("auto-aof-rewrite-percentage", "-1"),
        ("auto-aof-rewrite-min-size", "64mb"),
        ("slowlog-log-slower-than", "-1"),
        ("slowlog-max-len", "-1"),
        ("maxclients", "0"),
        ("maxclients", "2147483648"),
        ("hz", "often"),
        ("cluster-node-timeout", "-1"),
        ("tcp-keepalive", "60"),
        ("activerehashing", "maybe"),
        ("appendonly", "maybe"),
        ("maxmemory-policy", "allkeys"),
        ("loglevel", "loud"),
        ("dir", "a\0b"),
        ("client-output-buffer-limit", ""),
        ("client-output-buffer-limit", "normal 0 0"),
        ("client-output-buffer-limit", "replica 0 0 0"),
        ("client-output-buffer-limit", "normal 0 0 -1"),
        ("bus-send-buffer", "0"),
    ],
)
def test_set_refuses_a_bad_value(name: str, value: str) -> None:
    with pytest.raises(CommandError) as caught:
        set_value(Config(), name.encode(), value.encode())

    assert caught.value.text == f"ERR Invalid argument '{value}' for CONFIG SET '{name}'".encode()


def test_a_bad_password_is_not_repeated() -> None:
    with pytest.raises(CommandError) as caught:
        set_value(Config(), b"requirepass", b"hush" * 200)

    assert caught.value.text == b"ERR Invalid argument '(redacted)' for CONFIG SET 'requirepass'"


def test_a_password_from_a_file_is_not_shown() -> None:
    config = Config(requirepass=b"hush", requirepass_file="/run/password")

    assert get(config, b"requirepass*") == [
        *(b"requirepass", b""),
        *(b"requirepass-file", b"/run/password"),
    ]


def test_the_port_that_others_are_told_of_is_the_plain_one_if_there_is_one() -> None:
    assert Config(port=1, tls_port=2).known_port == 1
    assert Config(port=0, tls_port=2).known_port == 2


def test_a_password_that_is_given_takes_the_place_of_the_files() -> None:
    config = Config(requirepass=b"hush", requirepass_file="/run/password")

    changed = set_value(config, b"requirepass", b"other")

    assert (changed.requirepass, changed.requirepass_file) == (b"other", "")


def test_no_secret_is_in_the_text_of_a_configuration() -> None:
    config = parse_line(Config(requirepass=b"hush"), ["cluster-secret", "hush" * 8])

    assert "hush" not in repr(config)
    assert b"hush" not in b"".join(get(config, b"cluster*"))


@pytest.mark.parametrize("name", REFUSED_BY_SET)
def test_set_refuses_what_cannot_be_set(name: str) -> None:
    with pytest.raises(CommandError) as caught:
        set_value(Config(), name.upper().encode(), b"1")

    assert caught.value.text == b"ERR Unsupported CONFIG parameter: " + name.upper().encode()


def test_a_password_may_be_any_bytes() -> None:
    changed = set_value(Config(), b"requirepass", b"\xff\x00\xc3\xa9")

    assert changed.requirepass == b"\xff\x00\xc3\xa9"
    assert get(changed, b"requirepass") == [b"requirepass", b"\xff\x00\xc3\xa9"]


@pytest.mark.parametrize(
    ("line", "name", "shown"),
    [
        ("PORT 7712", "port", "7712"),
        ("bind 127.0.0.1 ::1", "bind", "127.0.0.1 ::1"),
        ("maxmemory 512mb", "maxmemory", "536870912"),
        ("auto-aof-rewrite-min-size 64kb", "auto-aof-rewrite-min-size", "65536"),
        ("slowlog-log-slower-than -1", "slowlog-log-slower-than", "-1"),
        ("tcp-keepalive 60", "tcp-keepalive", "yes"),
        ("unixsocketperm 0755", "unixsocketperm", "755"),
        ("syslog-facility LOCAL7", "syslog-facility", "local7"),
        ("appendonly no", "appendonly", "no"),
        (
            "client-output-buffer-limit normal 1k 2k 3",
            "client-output-buffer-limit",
            "normal 1000 2000 3",
        ),
        ("log-format json", "log-format", "json"),
    ],
)
def test_a_line_of_the_file_takes(line: str, name: str, shown: str) -> None:
    assert value_of(parse_line(Config(), line.split()), name) == shown


def test_a_line_of_the_file_sets_what_get_hides() -> None:
    config = Config()
    for line in (
        "appendfilename other.aof",
        "cluster-config-file peers.conf",
        "syslog-enabled yes",
        "syslog-ident queue",
    ):
        config = parse_line(config, line.split())

    assert config.appendfilename == "other.aof"
    assert config.cluster_config_file == "peers.conf"
    assert config.syslog_enabled
    assert config.syslog_ident == "queue"


def test_renamed_commands_add_up() -> None:
    config = parse_line(Config(), ["rename-command", "DEBUG", ""])

    config = parse_line(config, ["rename-command", "CONFIG", "Setup"])

    assert config.renamed_commands == (("debug", ""), ("config", "setup"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("prot 1", f"{BAD_DIRECTIVE}: there is no 'prot', did you mean 'port'?"),
        ("slaveof a 1", f"{BAD_DIRECTIVE}: there is no 'slaveof', remove it"),
        (
            "watchdog-period 1",
            f"{BAD_DIRECTIVE}: 'watchdog-period' is for CONFIG SET alone, remove the line",
        ),
        ("port", f"{BAD_DIRECTIVE}: 'port' takes one value"),
        ("bind" + " ::1" * 17, f"{BAD_DIRECTIVE}: 'bind' takes 1 to 16 values"),
        (
            "bind ::1 10.0.0.1,10.0.0.2",
            "Invalid bind value: '10.0.0.1,10.0.0.2' is not an address such as 127.0.0.1 or ::1",
        ),
        ("rename-command debug", f"{BAD_DIRECTIVE}: 'rename-command' takes 2 values"),
        ("timeout soon", "Invalid timeout value: 'soon' is not a whole number from 0 up"),
        ("port 55536", "Invalid port value: '55536' is not a whole number from 0 to 55535"),
        (
            "workers 65",
            (
                "Invalid workers value: '65' is not a whole number from 1 to 64: give as many as "
                "this machine has cores to spare, or 1 for a single process"
            ),
        ),
        ("maxmemory 0", NO_MEMORY),
        (
            "maxmemory 9999999999gb",
            "Invalid maxmemory value: '9999999999gb' is more than 8 exabytes",
        ),
        (
            "cluster-node-timeout 0",
            "Invalid cluster-node-timeout value: '0' is not a whole number from 1 up",
        ),
        (
            "unixsocketperm 7777",
            "Invalid unixsocketperm value: '7777' is not an octal file mode from 0 to 777",
        ),
        (
            "loglevel loud",
            "Invalid loglevel value: 'loud' is none of debug, verbose, notice, warning",
        ),
        ("appendfilename a/b", BAD_FILE_NAME),
        ("pidfile a\0b", "Invalid pidfile value: it has a null byte in it"),
        (
            "requirepass " + "x" * 513,
            "Invalid requirepass value: a password has at most 512 bytes",
        ),
        ("client-output-buffer-limit replica 0 0 0", BAD_CLASS),
        ("cluster-secret " + "x" * 15, BAD_SECRET),
        ("cluster-secret " + "x" * 513, BAD_SECRET),
        (
            "proto-max-bulk-len 1",
            "Invalid proto-max-bulk-len value: '1' is not from 4kb to 512mb",
        ),
        (
            "client-query-buffer-limit 1",
            "Invalid client-query-buffer-limit value: '1' is not at least 1mb",
        ),
        (
            "bus-send-buffer 0",
            "Invalid bus-send-buffer value: 0 bytes leave no room for anything",
        ),
    ],
)
def test_a_line_of_the_file_is_refused_with_a_reason(line: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_line(Config(), line.split())

    assert caught.value.reason == reason


def test_what_rewrite_would_write_reads_back_to_the_same_config() -> None:
    config = Config(
        maxmemory=1536 << 20,
        unixsocketperm=0o755,
        tcp_keepalive_s=60,
        hz=500,
        client_output_buffer_limit=(1 << 20, 1000, 5),
        appendfsync="always",
        bind=("127.0.0.1", "::1"),
    )

    again = Config()
    for directive in DIRECTIVES:
        words = directive.kind.write(getattr(config, directive.field)).split()
        if directive.is_rewritten and words and not words[0].startswith('"'):
            again = parse_line(again, [directive.name, *words])

    assert again == config


@pytest.mark.parametrize(
    ("size", "written"),
    [(0, "0"), (1000, "1000"), (1024, "1kb"), (3 << 20, "3mb"), (1 << 40, "1024gb")],
)
def test_a_size_is_written_with_the_largest_unit_that_fits(size: int, written: str) -> None:
    assert size_written(size) == written


def test_texts_are_quoted_so_that_any_byte_survives() -> None:
    assert quoted(decode(b'a "b" \\ \n\r\t\a\b \xff~')) == r'"a \"b\" \\ \n\r\t\a\b \xff~"'


def test_an_unset_text_has_no_line() -> None:
    kinds = {directive.name: directive.kind for directive in DIRECTIVES}

    assert kinds["requirepass"].write(b"") == ""
    assert kinds["requirepass"].write(b"a") == '"a"'
    assert kinds["unixsocket"].write("") == ""
    assert kinds["logfile"].write("") == '""'
    assert kinds["rename-command"].write((("a", "b"),)) == ""


def test_bytes_that_are_no_text_survive_decoding() -> None:
    assert encode(decode(bytes(range(256)))) == bytes(range(256))


@pytest.mark.parametrize(
    ("pattern", "text", "does_match"),
    [
        (b"", b"", True),
        (b"", b"a", False),
        (b"*", b"", True),
        (b"port", b"port", True),
        (b"port", b"ports", False),
        (b"p?rt", b"port", True),
        (b"p?rt", b"prt", False),
        (b"*a*-*e", b"auto-aof-rewrite", True),
        (b"**ort", b"port", True),
        (b"h[ae]llo", b"hello", True),
        (b"h[ae]llo", b"hillo", False),
        (b"h[^a]llo", b"hello", True),
        (b"h[^a]llo", b"hallo", False),
        (b"h[a-e]llo", b"hcllo", True),
        (b"h[e-a]llo", b"hcllo", True),
        (b"h[\\]]llo", b"h]llo", True),
        (b"h[ae", b"ha", True),
        (b"h[a-", b"h-", True),
        (b"h[", b"h", False),
        (b"\\*", b"*", True),
        (b"\\*", b"a", False),
        (b"a\\", b"a\\", True),
    ],
)
def test_a_pattern_matches(pattern: bytes, text: bytes, does_match: bool) -> None:
    assert matches(pattern, text) is does_match


def test_a_pattern_full_of_stars_costs_little() -> None:
    assert not matches(b"*?" * 30 + b"*b", b"a" * 100)
