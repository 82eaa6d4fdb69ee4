import attrs
import pytest

from disque_trio.statemachine.base import CommandError
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.directives import DIRECTIVES, get, parse_line, set_value
from tests.statemachine.directing import value_of

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
    ("default-replicate", "3"),
    ("default-sync", "0"),
    ("replica-zone", ""),
    ("node-name", ""),
    ("cluster-name", ""),
    ("cluster-seeds", ""),
    ("cluster-announce-ip", ""),
    ("cluster-announce-port", "0"),
    ("cluster-announce-bus-port", "0"),
    ("log-format", "human"),
    ("bus-send-buffer", "33554432"),
    ("trace-file", ""),
    ("trace-file-sample", "1"),
    ("trace-file-max-bytes", "1073741824"),
    ("trace-file-keep", "8"),
    ("trace-sample", "1024"),
    ("ended-jobs", "100000"),
    ("result-max-bytes", "1048576"),
    ("spill-directory", ""),
    ("aof-format", "framed"),
    ("aof-queues", "yes"),
    ("requirepass-file", ""),
    ("cluster-secret-file", ""),
    ("protected-mode", "yes"),
    ("auth-timeout", "10"),
    ("unauthenticated-clients", "1000"),
    ("client-query-buffer-limit", "1073741824"),
    ("proto-max-bulk-len", "536870912"),
    ("replica-repair-after", "600"),
    ("tied-grace", "2000"),
    ("dead-letter-ttl", "604800"),
    ("workers", "1"),
    ("multiplexing-api", "auto"),
    ("tls-port", "0"),
    ("tls-cert-file", ""),
    ("tls-key-file", ""),
    ("tls-ca-cert-file", ""),
    ("tls-cluster-ca-cert-file", ""),
    ("tls-auth-clients", "yes"),
    ("tls-cluster", "no"),
    ("web-port", "0"),
    ("web-names", ""),
    ("web-metrics-open", "no"),
    ("web-read-only", "no"),
    ("web-tls", "no"),
    ("web-reader-password-file", ""),
    ("web-users-file", ""),
    ("web-audit-file", ""),
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
    "trace-file-sample",
    "trace-file-max-bytes",
    "trace-file-keep",
    "spill-directory",
    "aof-format",
    "aof-queues",
    "requirepass-file",
    "cluster-secret-file",
    "cluster-secret",
    "workers",
    "multiplexing-api",
    "tls-port",
    "tls-cluster",
    "web-port",
    "web-tls",
    "web-reader-password-file",
    "web-reader-password",
    "tls-key-file-pass",
    "appendfilename",
    "cluster-config-file",
    "rename-command",
    "syslog-enabled",
    "syslog-ident",
    "include",
    "nonsense",
]


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

    text = f"ERR Invalid argument '{value}' for CONFIG SET '{name}': ".encode()
    assert caught.value.text.startswith(text)
    assert len(caught.value.text) > len(text)


def test_a_bad_password_is_not_repeated() -> None:
    with pytest.raises(CommandError) as caught:
        set_value(Config(), b"requirepass", b"hush" * 200)

    assert caught.value.text == (
        b"ERR Invalid argument '(redacted)' for CONFIG SET 'requirepass': a password has at"
        b" most 512 bytes"
    )


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

    text = b"ERR Unsupported CONFIG parameter: " + name.upper().encode()
    assert caught.value.text.startswith(text)


def test_set_says_why_or_what_may_have_been_meant() -> None:
    for name, hint in (
        (b"port", b": it is read once, when the server starts; set it in the file"),
        (b"maxmemroy", b" (did you mean 'maxmemory'?)"),
        (b"colour", b""),
    ):
        with pytest.raises(CommandError) as caught:
            set_value(Config(), name, b"1")
        assert caught.value.text == b"ERR Unsupported CONFIG parameter: " + name + hint


def test_a_password_may_be_any_bytes() -> None:
    changed = set_value(Config(), b"requirepass", b"\xff\x00\xc3\xa9")

    assert changed.requirepass == b"\xff\x00\xc3\xa9"
    assert get(changed, b"requirepass") == [b"requirepass", b"\xff\x00\xc3\xa9"]
