"""INFO: figures of the node (original 2.11; docs/differences.md lists missing and new fields).

The driver supplies figures of the process, so sections that show them need a chore.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from disque_trio.statemachine import (
    hostnames,
    limiting,
    metrics,
    pressure,
    recovery,
    sessions,
    versions,
)
from disque_trio.statemachine.backlog import Backlog
from disque_trio.statemachine.base import FORMAT, SYNTAX_ERROR, CommandError, Reply
from disque_trio.statemachine.chores import ReadVitals, Vitals
from disque_trio.statemachine.client import WAITS, Blocked, Client
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.form import FORM
from disque_trio.statemachine.state import NodeState

FEATURES: Final = (
    "qstat-counts",
    "purge",
    "unblock",
    "waitjob",
    "withmeta",
    "tokens",
    "release",
    "tied",
    "priority",
    "unique",
    "dead-letters",
    "nack-delay",
    "backoff",
    "show-key",
    "cancel-key",
    "qscan-stat",
    "waitjob-nohang",
    "release-delay",
    "held",
    "sync",
    "unqueued",
    "enqueue-queue",
    "long-periods",
    "long-waits",
    "qstat-unqueued",
    "sync-auto",
    "last-error",
    "jscan-filters",
    "ended-jobs",
    "results",
    "queue-limits",
    "groups",
    "show-key-local",
)
"""The names of features beyond the original. A client checks them before it uses one."""
_SHOWN_QUEUES: Final = 10
"""The maximum number of queues listed by number of dead, delayed or restored jobs."""
_SHOWN_MEETS: Final = 8
_SHOWN_BYTES: Final = 64
_NEED_EXTENSIONS: Final = ("priority", "unique", "dead-letters", "backoff", "groups")
"""Features that need a journal format with room for extensions of jobs."""
Field = tuple[str, object]
"""A field's name, and its value after the colon."""
Section = Callable[[NodeState, Vitals], Iterator[Field]]


def _server(node: NodeState, _vitals: Vitals) -> Iterator[Field]:
    facts = node.facts
    lived = node.mono - node.stats.started
    uptime = lived // 1000
    yield "disque_version", facts.version
    yield "os", facts.os
    yield "arch_bits", facts.arch_bits
    yield "multiplexing_api", facts.multiplexing
    yield "process_id", facts.pid
    yield "run_id", facts.run_id
    yield "tcp_port", facts.port
    yield "uptime_in_milliseconds", lived
    yield "uptime_in_seconds", uptime
    yield "uptime_in_days", uptime // 86400
    yield "hz", node.config.hz
    yield "executable", facts.executable
    yield "config_file", facts.config_file
    yield "python_version", facts.runtime
    yield "disque_form", FORM
    yield "format", FORMAT
    lacks = () if node.keeps_extensions else _NEED_EXTENSIONS
    yield "features", ",".join([name for name in FEATURES if name not in lacks])


def _clients(node: NodeState, vitals: Vitals) -> Iterator[Field]:
    connections = tuple(vitals.busy_connections())
    blocked = (*WAITS, Blocked.COPIES, Blocked.KEY)
    yield "connected_clients", len(node.clients)
    yield "client_longest_output_list", max((each.output_chunks for each in connections), default=0)
    yield "client_biggest_input_buf", max((each.input_bytes for each in connections), default=0)
    yield "blocked_clients", sum(each.blocked in blocked for each in node.clients.values())


def _memory(node: NodeState, vitals: Vitals) -> Iterator[Field]:
    pressure.review(node)
    used = pressure.used(node)
    yield "used_memory", used
    yield "used_memory_human", human(used)
    yield "used_memory_rss", vitals.rss_bytes
    yield "used_memory_peak", node.memory.peak
    yield "used_memory_peak_human", human(node.memory.peak)
    yield "used_memory_process", node.facts.process_bytes
    yield "used_memory_jobs_and_queues", node.memory.held
    yield "maxmemory", node.config.maxmemory
    yield "memory_limit", node.facts.memory_limit
    yield "memory_limit_of", node.facts.memory_limit_of
    yield "memory_level", pressure.level(node)
    yield "memory_limited_by", pressure.limited_by(node)
    yield "evicted_jobs", node.memory.evicted
    yield "mem_fragmentation_ratio", f"{vitals.rss_bytes / max(used, 1):.2f}"
    yield "mem_allocator", node.facts.allocator


def _jobs(node: NodeState, _vitals: Vitals) -> Iterator[Field]:
    yield "registered_jobs", len(node.jobs)
    yield "dead_jobs", sum(map(len, node.dead.values()))
    if node.dead:
        yield "dead_jobs_by_queue", _most({name: len(jobs) for name, jobs in node.dead.items()})
    yield from _waiting(node, "delayed", node.delayed)
    yield "leased_jobs", sum(node.leased.values())
    yield "unqueued_jobs", sum(node.unqueued.values())
    yield from _waiting(node, "restored", node.restored)
    yield "expired_while_down", node.stats.expired_while_down
    yield "under_replicated_jobs", node.repair.reported
    yield "repaired_copies", node.stats.copies_repaired


def _waiting(node: NodeState, state: str, backlogs: Mapping[bytes, Backlog]) -> Iterator[Field]:
    """The delayed jobs, or the jobs that wait for the end of RETRY after a restart."""
    yield f"{state}_jobs", sum([each.number for each in backlogs.values()])
    if backlogs:
        yield f"{state}_jobs_by_queue", _most({n: each.number for n, each in backlogs.items()})
        due = min([each.first_due() for each in backlogs.values()])
        yield f"{state}_jobs_first_due_ms", max(due - node.mono, 0)


def _most(of_queues: Mapping[bytes, int]) -> str:
    """The queues with the most of these jobs, each with its number of jobs."""
    counts = sorted((-jobs, name) for name, jobs in of_queues.items())[:_SHOWN_QUEUES]
    return ",".join(f"{_plain(name)}={-count}" for count, name in counts)


def _plain(name: bytes) -> str:
    """The name, truncated, with ``?`` for separators and other characters that are not printable
    ASCII."""
    text = name[:_SHOWN_BYTES].decode("ascii", "replace")
    return "".join(c if "!" <= c <= "~" and c not in ",=" else "?" for c in text)


def _queues(node: NodeState, _vitals: Vitals) -> Iterator[Field]:
    yield "registered_queues", len(node.queues)
    if limited := limiting.limited(node):
        queues = [queue for each in limited if (queue := node.queues.get(each.name))]
        yield "limited_queues", len(limited)
        yield "limited_queues_waiting", sum([limiting.waits(node, each) for each in queues])
        yield "nodes_without_limits", len(limiting.unlimited_nodes(node))


def _persistence(node: NodeState, vitals: Vitals) -> Iterator[Field]:
    journal = vitals.journal
    yield "loading", int(node.refusal is recovery.LOADING)
    yield "aof_enabled", int(journal.state != "off")
    yield "aof_state", journal.state
    yield "aof_rewrite_in_progress", int(journal.is_rewriting)
    yield "aof_rewrite_scheduled", 0
    yield "aof_last_rewrite_time_sec", journal.last_rewrite_s
    yield "aof_current_rewrite_time_sec", journal.current_rewrite_s
    yield "aof_last_bgrewrite_status", "ok" if journal.last_rewrite_ok else "err"
    yield "aof_last_write_status", "ok" if journal.last_write_ok else "err"
    if journal.state != "off":
        yield "aof_file_status", journal.file_status
        yield "aof_current_size", journal.size
        yield "aof_base_size", journal.base_size
        yield "aof_pending_rewrite", 0
        yield "aof_buffer_length", journal.unwritten
        yield "aof_rewrite_buffer_length", journal.rewrite_unwritten
        yield "aof_pending_bio_fsync", int(journal.is_syncing)
        yield "aof_delayed_fsync", journal.delayed_syncs
    if journal.loading_since:
        percent = 100 * journal.loaded_bytes / max(journal.loading_bytes, 1)
        yield "loading_start_time", journal.loading_since
        yield "loading_total_bytes", journal.loading_bytes
        yield "loading_loaded_bytes", journal.loaded_bytes
        yield "loading_loaded_perc", f"{percent:.2f}"
        yield "loading_eta_seconds", journal.loading_left_s


def _cluster(node: NodeState, _vitals: Vitals) -> Iterator[Field]:
    other = node.cluster.duplicate
    yield "duplicate_node_id", int(other is not None)
    if other is not None:
        yield "duplicate_node_id_address", other.address.decode()
        yield "duplicate_node_id_yields", int(node.cluster.refusal is not None)
    found = versions.of_cluster(node)
    yield "cluster_versions", ",".join([f"{name}={count}" for name, count in found.items()])
    yield "replica_zone", node.config.replica_zone
    yield "node_id", node.cluster.myself.id.decode()
    yield "node_name", node.config.node_name
    yield "cluster_name", node.config.cluster_name
    silent = list(hostnames.unanswered(node))
    yield "unanswered_meets", len(silent)
    if silent:
        where = [f"{each.address}@{each.bus}" for each in silent[:_SHOWN_MEETS]]
        yield "unanswered_meet_address", where[0]
        if len(where) > 1:
            yield "unanswered_meet_others", ",".join(where[1:])
        yield "unanswered_meet_seconds", (node.mono - silent[0].since) // 1000
        if silent[0].error:
            yield "unanswered_meet_error", silent[0].error


def _stats(node: NodeState, _vitals: Vitals) -> Iterator[Field]:
    stats = node.stats
    commands, bytes_in, bytes_out = metrics.rates(node)
    yield "total_connections_received", stats.connections_received
    yield "total_commands_processed", stats.commands_processed
    yield "instantaneous_ops_per_sec", int(commands)
    yield "total_net_input_bytes", metrics.received(node)
    yield "total_net_output_bytes", metrics.sent(node)
    yield "instantaneous_input_kbps", f"{bytes_in / 1024:.2f}"
    yield "instantaneous_output_kbps", f"{bytes_out / 1024:.2f}"
    yield "rejected_connections", sum(stats.connections_rejected.values())
    traffic = node.facts.traffic
    yield "client_output_buffer_limit_disconnections", traffic.slow_readers_cut_off
    yield "client_query_buffer_limit_disconnections", traffic.senders_cut_off
    yield "latest_fork_usec", 0
    yield "protocol_errors", stats.protocol_errors
    yield "wrong_passwords", stats.wrong_passwords
    yield from _refused(node)
    yield "bus_frames_dropped", stats.frames_dropped
    yield "bus_frames_refused", sum(stats.frames_refused.values())
    yield "bus_frames_refused_by_reason", _by_reason(stats.frames_refused)
    yield "rejected_connections_by_reason", _by_reason(stats.connections_rejected)
    yield "bus_links_refused", sum(stats.links_refused.values())
    yield "bus_links_refused_by_reason", _by_reason(stats.links_refused)


def _refused(node: NodeState) -> Iterator[Field]:
    """Requests that were refused for lack of nodes, memory and so on (`refusals`). For the last
    streak of each cause: its first and last refusal in Unix seconds, and its length."""
    errors, refused = node.tally.errors, node.tally.refused
    yield "refused_requests", sum([errors[code] for code in refused])
    if refused:
        by_cause = {code.decode(): errors[code] for code in refused}
        yield "refused_requests_by_cause", _by_reason(by_cause)
        streaks = {code.decode(): streak for code, streak in refused.items()}
        for field, values in (
            ("last_refused", {code: each.last // 1000 for code, each in streaks.items()}),
            ("refused_since", {code: each.since // 1000 for code, each in streaks.items()}),
            ("refused_lately", {code: each.count for code, each in streaks.items()}),
        ):
            yield f"{field}_by_cause", _by_reason(values)


def _by_reason(counts: Mapping[str, int] | Mapping[Cause, int]) -> str:
    return ",".join(f"{reason}={count}" for reason, count in counts.items())


def _tally(node: NodeState, _vitals: Vitals) -> Iterator[Field]:
    tally = node.tally
    yield "jobs_added", tally.all_added()
    yield "jobs_queued", _by_reason(tally.all_queued())
    yield "jobs_delivered", tally.delivered
    if tally.again is not None:
        yield "jobs_requeued_lately", tally.again.count
        yield "jobs_delivered_meanwhile", tally.delivered - tally.again.before
        yield "jobs_requeued_since", tally.again.since // 1000
        yield "jobs_requeued_last", tally.again.last // 1000
    yield "jobs_postponed", tally.postponed
    yield "jobs_nacked", tally.nacked
    yield "jobs_acked", _by_reason(tally.acked)
    yield "jobs_given", tally.transferred
    yield "jobs_dropped", _by_reason(tally.dropped)
    yield "copies_taken", tally.copies_taken
    yield "copies_confirmed", tally.copies_confirmed
    yield "errors", _by_reason({code.decode(): count for code, count in tally.errors.items()})
    for name, times in (("wait", tally.wait), ("copying", tally.copying)):
        yield f"{name}_ms_buckets", ",".join(map(str, times.buckets))
        yield f"{name}_ms_sum", times.sum


def _cpu(_node: NodeState, vitals: Vitals) -> Iterator[Field]:
    yield "used_cpu_sys", f"{vitals.cpu_system:.2f}"
    yield "used_cpu_user", f"{vitals.cpu_user:.2f}"
    yield "used_cpu_sys_children", f"{vitals.cpu_system_children:.2f}"
    yield "used_cpu_user_children", f"{vitals.cpu_user_children:.2f}"
    yield "standstill_ms", vitals.standstill
    if vitals.standstill:
        yield "standstill_seconds_ago", vitals.standstill_ago // 1000


def _history(_node: NodeState, vitals: Vitals) -> Iterator[Field]:
    yield from vitals.history()


def _commandstats(node: NodeState, _vitals: Vitals) -> Iterator[Field]:
    for name, stat in node.stats.commands.items():
        each = stat.usec / stat.calls
        yield f"cmdstat_{name}", f"calls={stat.calls},usec={stat.usec},usec_per_call={each:.2f}"


SECTIONS: Final[Mapping[bytes, Section]] = MappingProxyType(
    {
        b"server": _server,
        b"clients": _clients,
        b"memory": _memory,
        b"jobs": _jobs,
        b"queues": _queues,
        b"persistence": _persistence,
        b"cluster": _cluster,
        b"stats": _stats,
        b"cpu": _cpu,
        b"commandstats": _commandstats,
        b"tally": _tally,
        b"history": _history,
    }
)
_UNITS: Final = "BKMGTP"
_LONG: Final = (b"commandstats", b"tally")
"""Sections that only `all` or their own name selects."""
_LONGEST: Final = b"history"
"""The section that only its own name selects."""
_FROM_VITALS: Final = (b"clients", b"memory", b"persistence", b"cpu", b"history")


def info(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """INFO [section]."""
    if len(args) > 2:
        raise CommandError(SYNTAX_ERROR + b": INFO takes one section at most")
    names = _sections(args[1].lower() if len(args) == 2 else b"default")
    metrics.sample(node)
    if not any(name in _FROM_VITALS for name in names):
        return _text(node, names, Vitals())

    def write(node: NodeState, _client: Client, vitals: Vitals) -> Reply:
        return _text(node, names, vitals)

    return sessions.ask(node, client, ReadVitals(), write)


def _sections(word: bytes) -> list[bytes]:
    if word == b"all":
        return [name for name in SECTIONS if name != _LONGEST]
    if word == b"default":
        return [name for name in SECTIONS if name not in (*_LONG, _LONGEST)]
    return [word] if word in SECTIONS else []


def _text(node: NodeState, names: list[bytes], vitals: Vitals) -> bytes:
    parts = []
    for name in names:
        title = "CPU" if name == b"cpu" else name.decode().capitalize()
        fields = "".join(f"{field}:{value}\r\n" for field, value in SECTIONS[name](node, vitals))
        parts.append(f"# {title}\r\n{fields}")
    return "\r\n".join(parts).encode()


def human(size: int) -> str:
    """A number of bytes in the largest unit of which it is at least one."""
    if size < 1024:
        return f"{size}B"
    unit = min((size.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{size / (1 << 10 * unit):.2f}{_UNITS[unit]}"
