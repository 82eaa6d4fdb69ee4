"""Directives as lines of a file: what they take, what they refuse, and how they are written."""

import hashlib
from base64 import b64encode

import pytest

from disque_trio.statemachine.config import Config
from disque_trio.statemachine.directives import BAD_DIRECTIVE, DIRECTIVES, parse_line
from disque_trio.statemachine.values import (
    MOST_SCRYPT_BYTES,
    ConfigError,
    decode,
    encode,
    quoted,
    size_written,
)
from tests.statemachine.directing import value_of

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
        ("web-names A.example b", "web-names", "a.example b"),
        ("web-names 10.0.0.9 a_b.example", "web-names", "10.0.0.9 a_b.example"),
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
        (
            "web-names a.example http://a",
            "Invalid web-names value: 'http://a' is not the name of a host such as a.example",
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
        ("requirepass " + "x" * 513, "Invalid requirepass value: a password has at most 512 bytes"),
        ("client-output-buffer-limit replica 0 0 0", BAD_CLASS),
        ("cluster-secret " + "x" * 15, BAD_SECRET),
        ("cluster-secret " + "x" * 513, BAD_SECRET),
        ("proto-max-bulk-len 1", "Invalid proto-max-bulk-len value: '1' is not from 4kb to 512mb"),
        (
            "client-query-buffer-limit 1",
            "Invalid client-query-buffer-limit value: '1' is not at least 1mb",
        ),
        ("bus-send-buffer 0", "Invalid bus-send-buffer value: 0 bytes leave no room for anything"),
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


TOKEN = "sha256$" + "0" * 64
SALT, HASH = (b64encode(bytes(size)).decode() for size in (16, 32))


def test_users_are_lines_of_name_role_and_hash() -> None:
    text = f"# shops\n\nann:admin:{TOKEN}\nbob:reader:{TOKEN}\n"

    assert parse_line(Config(), ["web-users", text]).web_users == text.encode()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            f"ann:admin:{TOKEN}\nbob:boss:{TOKEN}",
            (
                "line 2 is not NAME:ROLE:HASH with one of the roles "
                "reader, client, operator, admin; `disque-trio users` writes it"
            ),
        ),
        (f"ann:admin:{TOKEN}\nann:reader:{TOKEN}", "line 2 is a second one for ann"),
    ],
)
def test_a_wrong_line_of_a_user_is_named(text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_line(Config(), ["web-users", text])

    assert caught.value.reason == f"Invalid web-users value: {reason}"


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        ("0$8$1", "n is a power of two"),
        ("1$8$1", "n is a power of two"),
        ("16383$8$1", "n is a power of two"),
        ("65536$1$1", "n is a power of two"),
        ("16384$0$1", "r and p are 1 or more"),
        ("16384$8$0", "r and p are 1 or more"),
        ("16384$8$9", "n * r * p is 1,048,576 at most"),
        ("65536$8$1", "128 * n * r is less than 64 MiB"),
    ],
)
def test_numbers_of_scrypt_that_no_login_could_use_are_named(numbers: str, why: str) -> None:
    text = f"ann:admin:{TOKEN}\nbob:reader:scrypt${numbers}${SALT}${HASH}\n"
    with pytest.raises(ConfigError) as caught:
        parse_line(Config(), ["web-users", text])

    assert f"line 2: scrypt${numbers}$: " in caught.value.reason
    assert why in caught.value.reason
    assert caught.value.reason.endswith("then add the user with `disque-trio users add`")


@pytest.mark.parametrize("numbers", ["2$1$1", "32768$1$1", "16384$8$1", "16384$8$8", "32768$8$1"])
def test_numbers_of_scrypt_that_are_taken_can_be_computed(numbers: str) -> None:
    text = f"bob:reader:scrypt${numbers}${SALT}${HASH}"
    assert parse_line(Config(), ["web-users", text]).web_users == text.encode()

    n, r, p = map(int, numbers.split("$"))
    assert hashlib.scrypt(b"", salt=bytes(16), n=n, r=r, p=p, maxmem=MOST_SCRYPT_BYTES, dklen=32)


@pytest.mark.parametrize(("salt", "digest"), [("=" * 24, HASH), (SALT, "A" * 44)])
def test_a_salt_or_hash_that_is_no_base64_of_its_size_is_named(salt: str, digest: str) -> None:
    with pytest.raises(ConfigError, match="bytes in base64; delete the line"):
        parse_line(Config(), ["web-users", f"bob:reader:scrypt$16384$8$1${salt}${digest}"])
