"""For each option of a command about jobs, each directive, and each setting of a worker: the
properties that fail if it is ignored (docs/guarantees.md), or why none does.

A test fails if one has no row. `tests/sim/promises` has plans in which it ignores one at a time,
and proves that a property of its row fails (`make promises`).
"""

from typing import Final

import attrs


@attrs.frozen
class Judged:
    """If it is ignored, one of these properties fails."""

    properties: tuple[str, ...]


@attrs.frozen
class Elsewhere:
    """No property can fail, because of what the simulator is; tests of other kinds judge it."""

    why: str


@attrs.frozen
class Hole:
    """A property is missing, so a node that ignores it passes."""

    missing: str


Row = Judged | Elsewhere | Hole


def _judged(*properties: str) -> Judged:
    return Judged(properties)


_SCANS: Final = Elsewhere("observers scan without filters; tests/statemachine/commands has them")
OPTIONS: Final[dict[str, dict[str, Row]]] = {
    "addjob": {
        "REPLICATE": _judged("S16"),
        "SYNC": _judged("L13"),
        "DELAY": _judged("S6", "S16"),
        "RETRY": _judged("S16", "L2", "L8"),
        "TTL": _judged("S16"),
        "MAXLEN": _judged("S20"),
        "PRIORITY": _judged("S16"),
        "LIMIT": _judged("S26", "S16"),
        "UNIQUE": _judged("S16"),
        "KEEP": _judged("S16", "S24"),
        "IFEXISTS": _judged("S25", "S29"),
        "BACKOFF": _judged("S32", "S16"),
        "MAXBACKOFF": _judged("S32", "S16"),
        "ASYNC": _judged("L13"),
    },
    "getjob": {
        "NOHANG": _judged("L13"),
        "WITHCOUNTERS": _judged("S19"),
        "WITHMETA": _judged("S12"),
        "TIED": _judged("S23"),
        "HELD": _judged("S23"),
        "TIMEOUT": _judged("L13"),
        "COUNT": _judged("S19"),
    },
    "nack": {"DELAY": _judged("S19"), "DEAD": _judged("S19")},
    "release": {"DELAY": _judged("S19")},
    "enqueue": {"COUNT": _judged("S19")},
    "waitjob": {"NOHANG": _judged("L13"), "TIMEOUT": _judged("L13")},
    "pause": {"BCAST": _judged("S6")},
    "purge": {"DEAD": _judged("S23"), "BCAST": _judged("S19")},
    "redrive": {"COUNT": _judged("S19")},
    "qstat": {"UNQUEUED": _SCANS},
    "qscan": dict.fromkeys(
        ("COUNT", "BUSYLOOP", "MINLEN", "MAXLEN", "IMPORTRATE", "UNQUEUED", "REPLY"), _SCANS
    ),
    "jscan": dict.fromkeys(("COUNT", "BUSYLOOP", "QUEUE", "STATE", "REPLY"), _SCANS),
}
"""By command."""

_PROCESS: Final = Elsewhere("of the process, which the simulator has not: tests/serving")
_SOCKETS: Final = Elsewhere("of sockets and clients, which are simulated: tests/net, tests/web")
_LOGS: Final = Elsewhere("of logs and figures, which promise nothing of jobs: tests/observe")
_FILES: Final = Elsewhere("of when files are rewritten or how they are read: tests/storage")


def _all(names: str, row: Row) -> dict[str, Row]:
    return dict.fromkeys(names.split(), row)


DIRECTIVES: Final[dict[str, Row]] = {
    **_all(
        "pidfile databases watchdog-period hz daemonize activerehashing dir workers"
        " multiplexing-api appendfilename cluster-config-file rename-command spill-directory",
        _PROCESS,
    ),
    **_all(
        "requirepass requirepass-file unixsocket unixsocketperm timeout port tcp-backlog maxclients"
        " tcp-keepalive client-output-buffer-limit bind bus-send-buffer cluster-secret"
        " cluster-secret-file protected-mode auth-timeout unauthenticated-clients"
        " client-query-buffer-limit proto-max-bulk-len tls-port tls-cert-file tls-key-file"
        " tls-key-file-pass tls-ca-cert-file tls-cluster-ca-cert-file tls-auth-clients tls-cluster"
        " web-port web-names web-metrics-open web-read-only web-tls web-reader-password"
        " web-reader-password-file cluster-announce-ip cluster-announce-port"
        " cluster-announce-bus-port cluster-seeds",
        _SOCKETS,
    ),
    **_all(
        "logfile loglevel log-format syslog-enabled syslog-ident syslog-facility"
        " slowlog-log-slower-than slowlog-max-len latency-monitor-threshold trace-file"
        " trace-file-sample trace-file-max-bytes trace-file-keep trace-sample",
        _LOGS,
    ),
    **_all(
        "auto-aof-rewrite-percentage auto-aof-rewrite-min-size no-appendfsync-on-rewrite"
        " aof-rewrite-incremental-fsync aof-load-truncated aof-format",
        _FILES,
    ),
    "maxmemory": _judged("S34"),
    "maxmemory-samples": Hole("nothing judges which acknowledgements are evicted"),
    "maxmemory-policy": _judged("S2"),
    "cluster-node-timeout": _judged("L14"),
    "delivery-lease": _judged("L8", "S11"),
    "default-sync": _judged("L13"),
    "replica-zone": _judged("S30", "S31"),
    "appendfsync": _judged("S15"),
    "aof-enqueue-jobs-once": Hole("no plan has `yes`"),
    "appendonly": _judged("S15"),
    "default-replicate": _judged("S16"),
    "replica-repair-after": _judged("L7"),
    "tied-grace": _judged("S23"),
    "dead-letter-ttl": _judged("S26"),
}

_ENDS: Final = _judged("W8")
WORKER: Final[dict[str, Row]] = {
    "nodes": Elsewhere("a worker without it reaches no node"),
    "queues": _judged("S19"),
    "concurrency": _judged("W5"),
    "has_ties": _judged("S23"),
    "is_plain": Elsewhere("it is for originals (tests/cluster); W13 and W14 judge what is left"),
    "is_strict": _judged("W12"),
    "is_burst": Hole("no simulated worker has it"),
    "horizon": _judged("W5"),
    "drain": _ENDS,
    "abort": _ENDS,
    "name": _judged("S19"),
    "prefetch": _judged("W5"),
    "limit": _judged("W5"),
    "weight": Hole("nothing judges the shares of queues"),
}
"""The fields of `Settings` and `Queue` of the worker library's engine."""
