"""The events of a job at all nodes, one per line: `jobs show ID --timeline`."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from disque_trio.observe.client import DeadlineClient
from disque_trio.observe.survey import Survey
from disque_trio.observe.timeline import History, Timelines
from disque_trio.sim.picture.scripts import event_words
from disque_trio.terminal.counting import counted
from disque_trio.terminal.escapes import printable
from disque_trio.tracing.rows import Row

Json = dict[str, Any]
_FIELDS: Final = ("time", "node", "kind", "peer", "client", "cause", "detail")
"""Of a row, in JSON."""


async def ask(client: DeadlineClient, id: str) -> tuple[History, dict[str, str]]:
    """The history of the job, and the nodes that have not answered, with the reason."""
    return await Timelines().history(Survey(client), id)


def as_json(id: str, history: History) -> Json:
    """All that is known. Times are Unix microseconds, by clocks that were set right."""
    return history.facts(id) | {
        "events": [{name: getattr(row, name) for name in _FIELDS} for row in history.rows]
    }


def lines(id: str, history: History) -> Iterator[str]:
    """A few about the whole, then one for each event, with the seconds since the first one."""
    return map(printable, _lines(id, history))


def _lines(id: str, history: History) -> Iterator[str]:
    first = history.rows[0].time
    began = datetime.fromtimestamp(first / 1e6, UTC).isoformat(timespec="microseconds")
    yield f"{id}, {history.why}; the first event was at {began}"
    yield from history.clocks
    for node in history.nodes:
        if node["omitted"]:
            yield f"{node['name'] or node['node']}: {counted(node['omitted'], 'event')} omitted"
    width = max(len(row.node) for row in history.rows)
    for row in _with_snoozes(history.rows):
        yield f"{(row.time - first) / 1e6:+13.6f}  {row.node:<{width}}  {_describe(row)}"


def _with_snoozes(rows: Iterable[Row]) -> Iterator[Row]:
    """A wait that a RELEASE has begun is a snooze, and nothing has failed. Nodes that have heard of
    the wait have a row of it as well (`postponed`)."""
    is_snooze = False
    for row in rows:
        if row.kind == "postpone" and row.cause != "postponed":
            is_snooze = row.cause == "release"
        is_over = is_snooze and row.cause == "backed-off"
        yield attrs.evolve(row, cause="snooze-over") if is_over else row


def _describe(row: Row) -> str:
    more = f": {row.detail}" if row.detail else ""
    if row.kind == "send":
        return f"sends {row.cause.upper()} to {row.peer}{more}"
    if row.kind == "recv":
        return f"receives {row.cause.upper()} from {row.peer}{more}"
    other, by_kind = row.client or row.peer, event_words()
    whole = by_kind.get(f"{row.kind}.{row.cause}")
    words = whole or by_kind.get(row.kind)
    if words is None:
        text = f"{row.kind} {other}".rstrip()
    else:
        text = words.format(job="the job", other=other or "somebody")
    return f"{text} ({row.cause}){more}" if row.cause and not whole else text + more
