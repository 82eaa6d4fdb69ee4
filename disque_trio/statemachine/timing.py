"""Durations of commands: INFO commandstats, SLOWLOG and LATENCY (original 2.14).

Owns `CommandStat.calls` and `ns`.
"""

from typing import Final

from disque_trio.statemachine.base import FOREVER
from disque_trio.statemachine.commands import latency, slowlog
from disque_trio.statemachine.commands.rows import Command, Flag
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.redaction import redacted
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.stats import CommandStat

_LONG_NS: Final = 100_000
"""Shorter commands are checked only if the threshold of SLOWLOG is lower; that of LATENCY is at
least 1 ms."""


def count(node: NodeState, row: Command, calls: int, ns: int) -> None:
    """Count `calls` requests that took `ns` in total."""
    stats = node.stats.commands
    stat = stats.get(row.name)
    if stat is None:
        stat = stats[row.name] = CommandStat()
    stat.calls += calls
    stat.ns += ns


def slow_ns(config: Config) -> int:
    """The duration in nanoseconds below which a request is only counted."""
    least = config.slowlog_log_slower_than_us * 1000
    threshold = config.latency_monitor_threshold * 1_000_000 or FOREVER
    return min(least, threshold) if least >= 0 else threshold


def timed(node: NodeState, row: Command, args: list[bytes], ns: int) -> None:
    """Count a request that took `ns`, and record it if it was slow."""
    stat = node.stats.commands.get(row.name)
    if stat is None:
        count(node, row, 1, ns)
    else:
        stat.calls += 1
        stat.ns += ns
    if ns >= _LONG_NS or node.config.slowlog_log_slower_than_us * 1000 < _LONG_NS:
        note_if_slow(node, row, args, ns)


def note_if_slow(node: NodeState, row: Command, args: list[bytes], ns: int) -> None:
    """Record a request in SLOWLOG and LATENCY if it reaches their configured thresholds."""
    config = node.config
    if 0 <= config.slowlog_log_slower_than_us * 1000 <= ns:
        slowlog.record(node, redacted(row.name, args), ns // 1000)
    threshold = config.latency_monitor_threshold
    if threshold and ns >= threshold * 1_000_000:
        event = b"fast-command" if Flag.FAST in row.flags else b"command"
        latency.record(node, event, ns // 1_000_000)
