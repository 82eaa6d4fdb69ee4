"""The table of directives: the name of each, and how it is parsed, checked, shown and written.

The file and CONFIG SET do not always accept the same values; the table has the differences
(original 2.13). The driver reads and writes the files.
"""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from disque_trio.statemachine.base import LAST_PORT, MAX_RESULT, CommandError
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.jobtraces import MOST
from disque_trio.statemachine.pattern import matches
from disque_trio.statemachine.suggestions import did_you_mean
from disque_trio.statemachine.values import (
    ADDRESSES,
    FILE_NAME,
    FLAG,
    HOST_NAMES,
    MEMORY_LIMIT,
    NAME,
    OCTAL,
    OUTPUT_LIMITS,
    OWN_ADDRESS,
    PASSWORD,
    POSITIVE_SIZE,
    RENAMES,
    SEEDS,
    SHARED_SECRET,
    SIZE,
    TEXT,
    TEXT_OR_UNSET,
    USERS,
    WORKERS,
    ZONE,
    AnyKind,
    ConfigError,
    Kind,
    Reader,
    choice,
    clamped,
    decode,
    encode,
    flag_from,
    flag_shown,
    number,
    output_limits_from_one_word,
    size_from_to,
)


@attrs.frozen
class Directive:
    """One directive. `on_set` parses the value of CONFIG SET; None if CONFIG SET refuses the
    directive."""

    name: str
    kind: AnyKind
    on_set: Reader[Any] | None = None
    field: str = attrs.field(kw_only=True)
    """The field of `Config`."""
    in_file: bool = attrs.field(default=True, kw_only=True)
    is_shown: bool = attrs.field(default=True, kw_only=True)
    """By CONFIG GET."""
    is_rewritten: bool = attrs.field(default=True, kw_only=True)
    """CONFIG REWRITE updates its lines in the file."""
    is_secret: bool = attrs.field(default=False, kw_only=True)
    """Its value is in no log, MONITOR, SLOWLOG, trace or error."""
    adds_up: bool = attrs.field(default=False, kw_only=True)
    """Each line of the file adds to those before it."""

    @field.default
    def _field_of_name(self) -> str:
        return self.name.replace("-", "_")


def _live(name: str, kind: AnyKind, **rest: Any) -> Directive:
    """A directive that CONFIG SET can change, parsed as in the file."""
    return Directive(name, kind, kind.read, **rest)


_KEEPALIVE_S: Final = 60


def _keepalive_set(words: Sequence[str]) -> int:
    """CONFIG SET accepts only yes or no, not seconds."""
    return _KEEPALIVE_S if flag_from(words) else 0


_COUNT: Final = number(0)
MOST_ENDED: Final = 10_000_000
_FROM_ONE: Final = number(1)
_INT32_MAX: Final = (1 << 31) - 1
MAX_REPLICAS: Final = 65_535
_INT64_MIN: Final = -(1 << 63)
_INT64_MAX: Final = (1 << 63) - 1
_QUERY_LIMIT: Final = size_from_to(1 << 20, _INT64_MAX)
_BULK_LIMIT: Final = size_from_to(4 << 10, 512 << 20)
_SYSLOG_FACILITY: Final = choice("user", *(f"local{n}" for n in range(8)))

DIRECTIVES: Final = (
    # In the order of CONFIG GET.
    _live("requirepass", PASSWORD, is_secret=True),
    Directive("unixsocket", TEXT_OR_UNSET),
    Directive("logfile", TEXT),
    Directive("pidfile", TEXT),
    _live("maxmemory", MEMORY_LIMIT),
    _live("maxmemory-samples", _FROM_ONE),
    _live("timeout", _COUNT, field="timeout_s"),
    _live("auto-aof-rewrite-percentage", _COUNT),
    Directive("auto-aof-rewrite-min-size", SIZE, _COUNT.read),
    Directive(
        "slowlog-log-slower-than",
        number(_INT64_MIN),
        _COUNT.read,
        field="slowlog_log_slower_than_us",
    ),
    _live("latency-monitor-threshold", _COUNT),
    _live("slowlog-max-len", _COUNT),
    Directive("port", number(0, 55535)),  # the bus listens 10000 above
    Directive("tcp-backlog", number(0, _INT32_MAX)),
    Directive("databases", _FROM_ONE, is_rewritten=False),
    _live("maxclients", number(1, _INT32_MAX)),
    _live("watchdog-period", _COUNT, in_file=False, is_rewritten=False),
    _live("hz", clamped(1, 500)),
    Directive("cluster-node-timeout", _FROM_ONE, _COUNT.read),
    Directive(
        "tcp-keepalive",
        Kind(number(0, _INT32_MAX).read, flag_shown, str),
        _keepalive_set,
        field="tcp_keepalive_s",
    ),
    Directive("no-appendfsync-on-rewrite", FLAG),
    Directive("daemonize", FLAG),
    _live("activerehashing", FLAG),
    _live("aof-rewrite-incremental-fsync", FLAG),
    _live("aof-load-truncated", FLAG),
    _live("aof-enqueue-jobs-once", FLAG),
    _live("maxmemory-policy", choice("acks", "noeviction")),
    _live("loglevel", choice("debug", "verbose", "notice", "warning")),
    _live("appendfsync", choice("everysec", "always", "no")),
    Directive("syslog-facility", _SYSLOG_FACILITY),
    _live("appendonly", FLAG),
    _live("dir", TEXT_OR_UNSET),
    Directive("client-output-buffer-limit", OUTPUT_LIMITS, output_limits_from_one_word),
    Directive("unixsocketperm", OCTAL),
    Directive("bind", ADDRESSES),
    # Ours alone.
    _live("delivery-lease", FLAG),
    _live("default-replicate", number(1, MAX_REPLICAS)),
    _live("default-sync", number(0, MAX_REPLICAS)),
    _live("replica-zone", ZONE),
    _live("node-name", NAME),
    _live("cluster-name", NAME),
    _live("cluster-seeds", SEEDS),
    _live("cluster-announce-ip", OWN_ADDRESS),
    _live("cluster-announce-port", number(0, LAST_PORT)),
    _live("cluster-announce-bus-port", number(0, LAST_PORT)),
    Directive("log-format", choice("human", "json")),
    _live("bus-send-buffer", POSITIVE_SIZE),
    Directive("trace-file", TEXT),
    Directive("trace-file-sample", number(1, MOST)),
    Directive("trace-file-max-bytes", SIZE),
    Directive("trace-file-keep", _FROM_ONE),
    _live("trace-sample", number(0, MOST)),
    _live("ended-jobs", number(0, MOST_ENDED)),
    _live("result-max-bytes", size_from_to(0, MAX_RESULT)),
    Directive("spill-directory", TEXT),
    Directive("aof-format", choice("framed", "disque")),
    Directive("aof-queues", FLAG),
    Directive("requirepass-file", TEXT_OR_UNSET),
    Directive("cluster-secret-file", TEXT_OR_UNSET),
    _live("protected-mode", FLAG),
    _live("auth-timeout", _COUNT, field="auth_timeout_s"),
    _live("unauthenticated-clients", _FROM_ONE),
    _live("client-query-buffer-limit", _QUERY_LIMIT),
    _live("proto-max-bulk-len", _BULK_LIMIT),
    _live("replica-repair-after", number(0, _INT32_MAX), field="replica_repair_after_s"),
    _live("tied-grace", number(0, _INT32_MAX)),
    _live("dead-letter-ttl", number(1, _INT32_MAX), field="dead_letter_ttl_s"),
    Directive("workers", WORKERS),
    Directive("multiplexing-api", choice("auto", "epoll", "kqueue", "tasks")),
    Directive("tls-port", number(0, 55535)),
    _live("tls-cert-file", TEXT_OR_UNSET),
    _live("tls-key-file", TEXT_OR_UNSET),
    _live("tls-ca-cert-file", TEXT_OR_UNSET),
    _live("tls-cluster-ca-cert-file", TEXT_OR_UNSET),
    _live("tls-auth-clients", choice("yes", "no", "optional")),
    Directive("tls-cluster", FLAG),
    Directive("web-port", number(0, LAST_PORT)),
    _live("web-names", HOST_NAMES),
    _live("web-metrics-open", FLAG),
    _live("web-read-only", FLAG),
    Directive("web-tls", FLAG),
    Directive("web-reader-password-file", TEXT_OR_UNSET),
    Directive("web-users-file", TEXT_OR_UNSET),
    Directive("web-audit-file", TEXT),
    # In files only.
    Directive("appendfilename", FILE_NAME, is_shown=False),
    Directive("cluster-config-file", TEXT, is_shown=False),
    Directive(
        "rename-command",
        RENAMES,
        field="renamed_commands",
        is_shown=False,
        is_rewritten=False,
        adds_up=True,
    ),
    Directive("syslog-enabled", FLAG, is_shown=False),
    Directive("syslog-ident", TEXT, is_shown=False),
    Directive("tls-key-file-pass", PASSWORD, is_shown=False, is_secret=True),
    Directive("cluster-secret", SHARED_SECRET, is_shown=False, is_secret=True),
    Directive("web-reader-password", PASSWORD, is_shown=False, is_secret=True),
    Directive("web-users", USERS, is_shown=False, is_secret=True),
)

BY_NAME: Final = {directive.name: directive for directive in DIRECTIVES}
SECRETS: Final = frozenset(directive.name for directive in DIRECTIVES if directive.is_secret)
SECRET_FILES: Final[Mapping[str, str]] = {
    "requirepass": "requirepass_file",
    "cluster-secret": "cluster_secret_file",
    "web-reader-password": "web_reader_password_file",
    "web-users": "web_users_file",
}
"""The fields with the files of secrets. Setting a secret directly clears its file."""


def get(config: Config, pattern: bytes) -> list[bytes]:
    """Alternating names and values of the directives whose names match the glob `pattern`."""
    pairs: list[bytes] = []
    for directive in DIRECTIVES:
        name = encode(directive.name)
        if directive.is_shown and matches(pattern, name):
            pairs += [name, encode(_shown(config, directive))]
    return pairs


def _shown(config: Config, directive: Directive) -> str:
    """The value to show; empty for a secret that was read from a file."""
    if is_from_file(config, directive):
        return ""
    return directive.kind.show(getattr(config, directive.field))


def is_from_file(config: Config, directive: Directive) -> bool:
    """Is the value read from a file of its own?"""
    return bool(directive.name in SECRET_FILES and getattr(config, SECRET_FILES[directive.name]))


def set_value(config: Config, name: bytes, value: bytes) -> Config:
    """`config` with one directive changed. Raises CommandError."""
    directive = BY_NAME.get(decode(name.lower()))
    if directive is None or directive.on_set is None:
        raise CommandError(b"ERR Unsupported CONFIG parameter: %b%b" % (name, _why_not(name)))
    try:
        read = directive.on_set([decode(value)])
    except (ValueError, ConfigError) as error:
        value_shown = b"(redacted)" if directive.is_secret else value
        text = b"ERR Invalid argument '%b' for CONFIG SET '%b': %b" % (
            value_shown, name, encode(str(error)),
        )  # fmt: skip
        raise CommandError(text) from None
    return _changed(config, directive, read)


def _why_not(name: bytes) -> bytes:
    """A hint why CONFIG SET rejects the name; empty if there is none."""
    if decode(name.lower()) in BY_NAME:
        return b": it is read once, when the server starts; set it in the file"
    return did_you_mean(name, [encode(each.name) for each in DIRECTIVES if each.on_set is not None])


def parse_line(config: Config, words: Sequence[str]) -> Config:
    """`config` with a line of a configuration file applied. Raises ConfigError."""
    directive = BY_NAME.get(words[0].lower())
    if directive is None or not directive.in_file:
        raise ConfigError(f"{BAD_DIRECTIVE}: {_advice(words[0].lower())}")
    values = words[1:]
    kind = directive.kind
    if not kind.least <= len(values) <= kind.most:
        raise ConfigError(f"{BAD_DIRECTIVE}: '{directive.name}' takes {_value_count(kind)}")
    try:
        read = kind.read(values)
    except ValueError as error:
        raise ConfigError(f"Invalid {directive.name} value: {error}") from None
    if directive.adds_up:
        read = getattr(config, directive.field) + read
    return _changed(config, directive, read)


BAD_DIRECTIVE: Final = "Bad directive or wrong number of arguments"


def _advice(name: str) -> str:
    if name in BY_NAME:
        return f"'{name}' is for CONFIG SET alone, remove the line"
    near = difflib.get_close_matches(name, BY_NAME, n=1)
    return f"there is no '{name}'" + (f", did you mean '{near[0]}'?" if near else ", remove it")


def _value_count(kind: AnyKind) -> str:
    if kind.least != kind.most:
        return f"{kind.least} to {kind.most} values"
    return "one value" if kind.most == 1 else f"{kind.most} values"


def _changed(config: Config, directive: Directive, value: object) -> Config:
    change: dict[str, Any] = {directive.field: value}
    if directive.name in SECRET_FILES:
        change[SECRET_FILES[directive.name]] = ""
    return attrs.evolve(config, **change)
