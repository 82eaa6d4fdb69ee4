"""The topic `job-timeline`: the events of one job at all nodes, in order of time.

Asked with `{"id": "D-…"}`. The answer:

- `id`; `traced`: does any node trace the job, or has it rows of it?; `why`: a sentence why there
  are events, or none.
- `nodes`, for each node that answers: `node` (its address), `name` (n1 …), `rows` (how many),
  `why` (`sampled`, `queue`, `asked`, `trouble`, or null if this node does not trace it), `on` (does
  the trace continue?), `here` (has it the job?), `omitted` (the number of rows that it dropped),
  `right_ms` (the correction of its clock, negative if it is ahead) and `error_ms` (its error).
- `clocks`: for each node whose clock is off by more than the error, a sentence such as
  "n2: clock corrected by −12 ± 3 ms".
- `run`: null without rows, or what the page of a file is made of (`sim.picture.page.content`): in
  its `run` is the slice that the timeline draws (`sim.picture.table`), with all rows; in its
  `head.zero` the calendar time of the first row, which is time 0. Nodes have the names above, also
  those that only appear in rows of others. The first job of the slice is the job.

Nodes that did not answer are in `unreached`, as in all topics. As long as the job has no new
events, the answer is identical.
"""

import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import anyio.to_thread
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.observe.client import query
from disque_trio.observe.survey import Survey
from disque_trio.observe.values import Json, word
from disque_trio.sim.traces.clocks import Clock, narrowed, shifted
from disque_trio.statemachine.wording import SHORT
from disque_trio.tracing.rows import Row
from disque_trio.tracing.trace_reply import TraceReply, parse_trace_reply
from disque_trio.worker.operating.asking import Found, at_each
from disque_trio.worker.operating.plans import MistakeError

MEASURED_S: Final = 30.0
"""The maximum age of the best measurement of a clock; clocks drift."""
_KEPT: Final = 32
"""The maximum number of answers that are kept."""


@attrs.frozen
class TimelineReply:
    """The answer of one node."""

    address: Address
    short: str
    """Its name in rows."""
    trace: TraceReply | None


@attrs.define(eq=False)
class Timelines:
    """Measurements of clocks, and the last answers. They are kept so that pictures do not change
    without cause."""

    clocks: dict[str, tuple[float, Clock]] = attrs.Factory(dict)
    """By node: when the clock was measured, and the result."""
    answers: dict[str, tuple[object, Json]] = attrs.Factory(dict)
    """By job: the state of the traces, and the answer made from it."""

    async def look(self, survey: Survey, args: Json) -> tuple[Json, dict[str, str]]:
        """Return the answer of the topic."""
        id = word(args, "id")
        if not id.startswith("D-"):
            raise MistakeError(f"'{id}' is not the id of a job: ids begin with D-")
        found = await self._ask_all(survey, id)
        state = [(str(each.address), _state(each.trace)) for each in found.items]
        kept = self.answers.get(id)
        if kept is None or kept[0] != state:
            known = self._known(survey, found.items)
            answer = await anyio.to_thread.run_sync(answered, id, found.items, *known)
            kept = self.answers[id] = state, answer
            while len(self.answers) > _KEPT:
                del self.answers[next(iter(self.answers))]
        return kept[1], found.unreached

    async def history(self, survey: Survey, id: str) -> tuple["History", dict[str, str]]:
        """Return the same as rows."""
        found = await self._ask_all(survey, id)
        return history_of(found.items, *self._known(survey, found.items)), found.unreached

    async def _ask_all(self, survey: Survey, id: str) -> Found[TimelineReply]:
        await survey.look()
        return await at_each(survey.client, lambda address: self._ask(survey, address, id))

    def _known(
        self, survey: Survey, replies: Sequence[TimelineReply]
    ) -> tuple[dict[str, str], dict[str, Clock]]:
        """Return the names of nodes, and the measured clocks."""
        names = {node.id[:SHORT]: node.name for node in survey.nodes.values() if node.id}
        return names, {each.short: self.clocks[each.short][1] for each in replies}

    async def _ask(self, survey: Survey, address: Address, id: str) -> list[TimelineReply]:
        asked: list[Command[Any]] = [commands.time(), query("TRACE", "GET", id)]
        before = time.time()
        clock, trace = await survey.client.ask(address, asked)
        after = time.time()
        node = survey.nodes.get(str(address))
        short = node.id[:SHORT] if node is not None and node.id else str(address)
        self._measure(short, clock, before, after)
        return [TimelineReply(address, short, _trace(trace, short))]

    def _measure(self, short: str, clock: Any, before: float, after: float) -> None:
        at = _micros(clock)
        middle, error = round((before + after) * 500_000), round((after - before) * 500_000)
        known = self.clocks.get(short)
        if known is None or error < known[1].error or before - known[0] > MEASURED_S:
            self.clocks[short] = before, Clock(at - middle, error)


# A node may have other commands by these names (rename-command). Such a node is treated as one that
# has not answered.


def _micros(clock: Any) -> int:
    if isinstance(clock, DisqueError):
        raise DisqueError(f"its reply to TIME is invalid: {clock}")
    micros: int = clock
    return micros


def _trace(reply: Any, short: str) -> TraceReply | None:
    if isinstance(reply, DisqueError):
        return None
    try:
        return parse_trace_reply(reply, short)
    except (TypeError, ValueError, KeyError):
        raise DisqueError("its reply to TRACE GET is invalid") from None


def _state(trace: TraceReply | None) -> object:
    return None if trace is None else (trace.last, trace.is_on, trace.is_here)


@attrs.frozen
class History:
    """The events of one job."""

    is_traced: bool
    why: str
    """Why there are events, or why there are none."""
    nodes: list[Json]
    clocks: list[str]
    """Sentences about the clocks that were corrected."""
    rows: list[Row]
    """Rows of all nodes, in order of time."""

    def facts(self, id: str) -> Json:
        """Return all but the rows."""
        return {
            "id": id,
            "traced": self.is_traced,
            "why": self.why,
            "nodes": self.nodes,
            "clocks": self.clocks,
        }


def history_of(
    replies: Sequence[TimelineReply], names: Mapping[str, str], measured: Mapping[str, Clock]
) -> History:
    """Merge the replies of the nodes. `names` and `measured` are by `TimelineReply.short`."""
    rows = {each.short: each.trace.rows for each in replies if each.trace is not None}
    clocks = {**measured, **_narrowed(replies, measured)}
    traces = [shifted(of_node, clocks[short]) for short, of_node in rows.items()]
    nodes = [_node(each, names, clocks[each.short]) for each in replies]
    return History(
        any(each.trace is not None for each in replies),
        _why(replies),
        nodes,
        [_set_right(each) for each in nodes if _is_off(each)],
        _merged(traces, names) if any(traces) else [],
    )


def _narrowed(replies: Sequence[TimelineReply], measured: Mapping[str, Clock]) -> dict[str, Clock]:
    """Narrow the clocks by messages between nodes that have omitted no rows: with omitted rows it
    is unknown which rows belong to one message."""
    whole = {
        each.short: each.trace.rows for each in replies if each.trace and not each.trace.omitted
    }
    return narrowed(whole, {short: measured[short] for short in whole})


def answered(
    id: str,
    replies: Sequence[TimelineReply],
    names: Mapping[str, str],
    measured: Mapping[str, Clock],
) -> Json:
    """Return the answer of the topic, from the same arguments as `history_of`."""
    history = history_of(replies, names, measured)
    return history.facts(id) | {"run": _run(history.rows) if history.rows else None}


def _node(reply: TimelineReply, names: Mapping[str, str], clock: Clock) -> Json:
    trace = reply.trace
    return {
        "node": str(reply.address),
        "name": names.get(reply.short, ""),
        "rows": 0 if trace is None else len(trace.rows),
        "why": None if trace is None else trace.why,
        "on": trace is not None and trace.is_on,
        "here": trace is not None and trace.is_here,
        "omitted": 0 if trace is None else trace.omitted,
        "right_ms": round(-clock.ahead / 1000, 1),
        "error_ms": round(clock.error / 1000, 1),
    }


def _is_off(node: Json) -> bool:
    return bool(node["rows"] and abs(node["right_ms"]) > max(node["error_ms"], 1))


def _set_right(node: Json) -> str:
    by, error = f"{node['right_ms']:+.0f}".replace("-", "−"), max(node["error_ms"], 1)
    return f"{node['name'] or node['node']}: clock corrected by {by} ± {error:.0f} ms"


_WHYS: Final = {
    "asked": "traced on request (TRACE JOB)",
    "trouble": "traced since it failed or was requeued",
    "queue": "in the sample of its queue (TRACE QUEUE)",
    "sampled": "in the sample of all jobs (trace-sample)",
}


def _why(replies: Sequence[TimelineReply]) -> str:
    whys = [each.trace.why for each in replies if each.trace is not None]
    if not whys:
        return "it is not traced: “Trace on” records its events from then on"
    return next((text for why, text in _WHYS.items() if why in whys), "")


# The modules are loaded at the first call: a node that serves a console needs no simulator before.


def _merged(traces: list[list[Row]], names: Mapping[str, str]) -> list[Row]:
    merge_live: Any = import_module("disque_trio.sim.traces.merge_live")
    rows: list[Row] = merge_live.merged(traces, dict(names))
    return rows


def _run(rows: list[Row]) -> Json:
    merge_live: Any = import_module("disque_trio.sim.traces.merge_live")
    page: Any = import_module("disque_trio.sim.picture.page")
    run: Json = page.content(merge_live.plan_of(rows), rows, None, "")
    return run
