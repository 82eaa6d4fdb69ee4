"""The run as a log for ShiViz, a viewer of distributed executions: host, vector clock, event.

ShiViz requires that each host's own component counts its events without a gap. The clocks of rows
may have gaps, so they only determine which event precedes which, and the numbers are computed
again.
"""

import json
from collections.abc import Iterator, Sequence

from disque_trio.sim.model.vector_clocks import Stamp, precedes
from disque_trio.sim.picture.links import lifeline, link
from disque_trio.tracing.rows import Row

PARSER = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)"
"""The regular expression with which ShiViz parses the log; it is the first line."""


def export(rows: Sequence[Row], *, job: str = "") -> str:
    """Return the log, of one job if given: the parser, an empty line, and two lines for each
    event."""
    jobs = link(rows).jobs if job else []
    shown = [row for row, of in zip(rows, jobs, strict=True) if of == job] if job else rows
    return "\n".join((PARSER, "", *_events(shown))) + "\n"


def _events(rows: Sequence[Row]) -> Iterator[str]:
    mates = link(rows).mates
    counts: dict[str, dict[str, int]] = {}
    stamps: dict[str, list[Stamp]] = {}
    at: dict[int, dict[str, int]] = {}
    mated = frozenset(mates)
    for index, row in enumerate(rows):
        host = lifeline(row)
        if not host:
            continue
        clock = counts.setdefault(host, {})
        clock[host] = clock.get(host, 0) + 1
        if mates[index] in at:
            _join(clock, at[mates[index]])
        if row.clock:
            _advance(clock, host, row.clock, stamps)
        stamps.setdefault(host, []).append(row.clock)
        if index in mated:
            at[index] = dict(clock)
        yield f"{host} {json.dumps(clock)}"
        yield _describe(row)


def _join(clock: dict[str, int], other: dict[str, int]) -> None:
    for host, count in other.items():
        clock[host] = max(clock.get(host, 0), count)


def _advance(
    clock: dict[str, int], host: str, stamp: Stamp, stamps: dict[str, list[Stamp]]
) -> None:
    """Set the other hosts' components to the number of their preceding events."""
    for other, theirs in stamps.items():
        known = clock.get(other, 0)
        while other != host and known < len(theirs) and precedes(theirs[known], stamp):
            known += 1
        if known:
            clock[other] = known


def _describe(row: Row) -> str:
    parts = (
        f"{row.time / 1e6:.6f}",
        row.kind,
        row.job,
        row.cause,
        row.peer or row.client,
        row.detail,
    )
    return " ".join(" ".join(parts).split())
