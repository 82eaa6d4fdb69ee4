"""LATENCY, and its samples: the longest pause of each second, by event (original 2.14).

Owns `NodeState.latency`: a `LatencyMonitor` with `Samples` by event.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from disque_trio.statemachine.base import SYNTAX_ERROR, CommandError, Reply
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands.usage import mistake
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.stats import Samples

_GRAPH_COLUMNS: Final = 72
USAGE: Final = "LATEST | HISTORY event | GRAPH event | DOCTOR | RESET [event ...]"
_GRAPH_ROWS: Final = 6

ADVICE: Final[Mapping[bytes, str]] = MappingProxyType(
    {
        b"command": (
            "Commands over long lists of jobs or queues delay all other clients: SLOWLOG GET lists"
            " them. Give QSCAN and JSCAN a smaller COUNT and no BUSYLOOP, and send fewer ids at"
            " once to ACKJOB, ENQUEUE and DELJOB."
        ),
        b"fast-command": (
            "Commands that do little took long, so the node was not running: look for other"
            " processes on its cores, for swapping, for a throttled container."
        ),
        b"jobs-processing": (
            "Many jobs were due at the same moment: expiring, queued again or waiting to be"
            " collected. Spread DELAY and RETRY, or spread the jobs over more nodes."
        ),
    }
)


def record(node: NodeState, event: bytes, ms: int) -> None:
    """Record a pause of `ms` if monitoring is on and the pause reaches the threshold."""
    threshold = node.config.latency_monitor_threshold
    if not threshold or ms < threshold:
        return
    samples = node.latency.events.setdefault(event, Samples())
    samples.worst = max(samples.worst, ms)
    second = node.wall // 1000
    series = samples.series
    if series and series[-1][0] == second:
        ms = max(ms, series.pop()[1])
    series.append((second, ms))


def latency(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """LATENCY LATEST | HISTORY event | GRAPH event | DOCTOR | RESET [event ...]."""
    match [args[1].lower(), *args[2:]]:
        case [b"latest"]:
            return [
                [event, *samples.series[-1], samples.worst]
                for event, samples in node.latency.events.items()
            ]
        case [b"history", event]:
            history = node.latency.events.get(event)
            return [] if history is None else [[second, ms] for second, ms in history.series]
        case [b"graph", event]:
            return _graph(node, event)
        case [b"doctor"]:
            return "\n".join(_examine(node)).encode() + b"\n"
        case [b"reset", *events]:
            known = node.latency.events
            found = dict.fromkeys(event for event in events or known if event in known)
            for event in found:
                del known[event]
            return len(found)
    raise CommandError(SYNTAX_ERROR + b": " + mistake("LATENCY", USAGE, args))


def _graph(node: NodeState, event: bytes) -> bytes:
    """One column for each of the newest samples, oldest on the left."""
    samples = node.latency.events.get(event)
    if samples is None:
        raise CommandError(b"ERR No samples available for event '%b'" % event)
    shown = list(samples.series)[-_GRAPH_COLUMNS:]
    pauses = [ms for _, ms in shown]
    oldest, newest = (_age(node, second) for second in (shown[0][0], shown[-1][0]))
    scale = f"{_samples(len(shown))} from {oldest} to {newest} ago, worst ever {samples.worst} ms"
    return b"%b: %b\n" % (event, "\n".join([scale, *_columns(pauses)]).encode())


def _samples(count: int) -> str:
    return "1 sample" if count == 1 else f"{count} samples"


def _columns(values: Sequence[int]) -> Iterator[str]:
    """An ASCII chart with its scale on the left; the lowest value is one row high."""
    low, high = min(values), max(values)
    heights = [
        1 + (value - low) * (_GRAPH_ROWS - 1) // (high - low) if high > low else 1
        for value in values
    ]
    edge = len(str(high))
    for row in range(max(heights), 0, -1):
        label = str(low) if row == 1 else str(high) if row == _GRAPH_ROWS else ""
        bars = "".join("#" if height >= row else " " for height in heights)
        yield f"{label:>{edge}} |{bars.rstrip()}"
    yield " " * edge + " +" + "-" * len(values)


def _age(node: NodeState, second: int) -> str:
    """The age of a second of the wall clock, in the largest unit of which it is at least one."""
    age = max(0, node.wall // 1000 - second)
    for unit, seconds in (("d", 86400), ("h", 3600), ("m", 60)):
        if age >= seconds:
            return f"{age // seconds}{unit}"
    return f"{age}s"


def _examine(node: NodeState) -> Iterator[str]:
    """LATENCY DOCTOR: a summary of each event, with advice."""
    threshold = node.config.latency_monitor_threshold
    if not threshold:
        yield (
            "The latency monitor is off. CONFIG SET latency-monitor-threshold <milliseconds>"
            " records every pause that long or longer."
        )
    elif not node.latency.events:
        yield f"No pause of {threshold} ms or more was seen."
    for event, samples in node.latency.events.items():
        pauses = [ms for _, ms in samples.series]
        yield (
            f"{event.decode(errors='backslashreplace')}: {_samples(len(pauses))},"
            f" mean {sum(pauses) / len(pauses):.0f} ms, worst ever {samples.worst} ms,"
            f" last {_age(node, samples.series[-1][0])} ago."
        )
        yield "  " + ADVICE.get(event, "Nothing is known about this event.")
