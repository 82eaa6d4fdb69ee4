"""The state of a flow, from the keys of its jobs on the nodes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio.to_thread
import attrs

from disque_trio.client import commands
from disque_trio.client.records import JobDetails, KeyHolder
from disque_trio.worker import codec, tokens
from disque_trio.worker.copies import NO_COPIES
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.envelope import BadBodyError, as_coded
from disque_trio.worker.envelope import read as read_body
from disque_trio.worker.flows import building
from disque_trio.worker.flows.handles import (
    CANCELLED,
    FAILED,
    UNDONE,
    EnqueuedFlow,
    FlowFailedError,
    FlowMemberStatus,
    FlowState,
    FlowStatus,
    MemberState,
    Planned,
    key_of,
)
from disque_trio.worker.operating.asking import Asking, InSteps, settled
from disque_trio.worker.operating.jobs import Jobs
from disque_trio.worker.operating.key_holders import key_holders
from disque_trio.worker.tokens import OVER, TOKENS, Token

_STATES: Final[dict[str, MemberState]] = {
    "waiting": "waiting",
    "queued": "waiting",
    "with-worker": "leased",
    "backing-off": "backing-off",
    "dead": "dead",
    "done-kept": "done",
}
"""The states of members, by the reply to SHOW KEY."""
_LIVELY: Final = ("waiting", "leased", "backing-off")
_CANCEL_TTL_S: Final = 7 * 24 * 3600
"""The time within which a worker must notice that a flow is cancelled."""
_CANCEL_KEEP_S: Final = 24 * 3600
"""How long `status` reports that a flow was cancelled."""


async def status(flow: EnqueuedFlow, client: Asking) -> FlowStatus:
    """The state of a flow and of each member."""
    return await _with_members(flow, client, await _marks(flow, client))


async def look(flow: EnqueuedFlow, client: Asking, *, is_full: bool) -> FlowStatus | None:
    """The state of a flow that is done; None if it is running as far as known. Dead members are
    detected only if the look `is_full`. Raises `FlowFailedError`."""
    marks = await _marks(flow, client)
    if not is_full and not _is_over(marks):
        return None
    found = await _with_members(flow, client, marks)
    if found.state == "running":
        return None
    if found.state != "done":
        raise FlowFailedError(found)
    return found


async def cancel(flow: EnqueuedFlow, client: Asking) -> bool:
    """Cancel a flow. Returns False if it is over."""
    if _is_over(await _marks(flow, client)):
        return False
    token = Token(is_cancelled=True)
    mark_args = CANCELLED, token, _CANCEL_KEEP_S
    mark = await settled(client, tokens.add_mark(flow.tokens, _CANCEL_TTL_S, NO_COPIES, *mark_args))
    if _is_over(await _marks(flow, client)):  # no coordinator may remove the mark
        await client.run(commands.ackjob(mark))
    return True


async def retry(flow: EnqueuedFlow, client: Asking) -> int:
    """Redrive the dead members. Returns their number."""
    jobs = Jobs(client)
    found = await status(flow, client)
    copies = [copy for each in found.dead for copy in (await jobs.find(each.id)).items]
    dead = [copy for copy in copies if copy.job.state == "dead"]
    return await jobs.of_each(dead, commands.redrive)


async def find(enqueuer: Enqueuer, client: Asking, id: str) -> EnqueuedFlow | None:
    """The flow of this coordinator job; None if no node has the job, or if it is another kind of
    job. Raises `BadBodyError` and `NewerBodyError` if this process cannot decode it."""
    jobs = [each.job for each in (await Jobs(client).find(id)).items if each.job.body]
    if not jobs:
        return None
    body = jobs[0].body or b""
    coded = as_coded(body)
    if coded is None or isinstance(client, InSteps) or not enqueuer.codecs.waits(coded):
        kwargs = arguments(enqueuer, body)
    else:
        kwargs = await anyio.to_thread.run_sync(arguments, enqueuer, body, abandon_on_cancel=True)
    return None if kwargs is None else handle(enqueuer, jobs[0], kwargs)


def arguments(enqueuer: Enqueuer, body: bytes) -> dict[str, Any] | None:
    """The arguments of a coordinator; None for the body of another job. Raises errors of codecs."""
    try:
        found = read_body(enqueuer.codecs.decoded(body), enqueuer.longest)
    except BadBodyError:
        if as_coded(body) is not None:
            raise
        return None
    if found.task != building.FLOW:
        return None
    return {name: codec.read_plain(bytes(part), found.form) for name, part in found.kwargs.items()}


def handle(enqueuer: Enqueuer, job: JobDetails, kwargs: Mapping[str, Any]) -> EnqueuedFlow:
    """The flow of a coordinator with these arguments. Raises `NotAFlowError`."""
    members, key = building.planned(building.read(kwargs)), kwargs.get("flow")
    if not isinstance(key, str):
        raise building.NotAFlowError("it has no name, which is needed to find its members")
    place = building.place_in(job.queue or "", key)
    return EnqueuedFlow(job.id, members, place, TOKENS + key, enqueuer)


# Keys.

_Marks = Sequence[KeyHolder | None]
"""The jobs with the key of the coordinator, and with those of the marks `OVER`, `FAILED` and
`CANCELLED`."""


async def _marks(flow: EnqueuedFlow, client: Asking) -> _Marks:
    marks = [(flow.tokens, key) for key in (OVER, FAILED, CANCELLED)]
    return await key_holders(client, [flow.place, *marks])


def _is_over(marks: _Marks) -> bool:
    coordinator, over, *_ = marks
    is_alive = coordinator is not None and coordinator.state not in ("done-kept", "dead")
    return over is not None or not is_alive


async def _with_members(flow: EnqueuedFlow, client: Asking, marks: _Marks) -> FlowStatus:
    places = [place for each in flow.members for place in each.places]
    holders = iter(await key_holders(client, places))
    is_over = _is_over(marks)
    members = [
        _member(number, each, [next(holders) for _ in each.places], is_over=is_over)
        for number, each in enumerate(flow.members)
    ]
    _, over, failed, cancelled = marks
    if cancelled is not None or (is_over and failed is not None):
        members = await _with_ends(flow, client, members)
    elif over is not None:
        members = [_acked(each) for each in members]
    return FlowStatus(id=flow.id, state=_state(flow, marks, members), members=members)


async def _with_ends(
    flow: EnqueuedFlow, client: Asking, members: Sequence[FlowMemberStatus]
) -> list[FlowMemberStatus]:
    """The members of a flow that has failed or is cancelled. An acknowledgement does not show
    whether the job was cancelled, but marks of the coordinator do."""
    acked = [each for each in members if each.state == "done"]
    asked = [(each.place, end) for each in acked for end in UNDONE]
    holders = await key_holders(client, [(flow.tokens, key_of(end, n)) for n, end in asked])
    ends = dict(pair for pair, found in zip(asked, holders, strict=True) if found is not None)
    return [attrs.evolve(each, state=ends.get(each.place, each.state)) for each in members]


def _acked(member: FlowMemberStatus) -> FlowMemberStatus:
    """A member of a flow whose members are all done according to their tokens. Each token is added
    before the acknowledgement, which may still be in transit."""
    return attrs.evolve(member, state="done") if member.state in _LIVELY else member


def _member(
    number: int, planned: Planned, holders: Sequence[KeyHolder | None], *, is_over: bool
) -> FlowMemberStatus:
    known = [(step, each) for step, each in enumerate(holders) if each is not None]
    if not known:
        state: MemberState = "skipped" if is_over else "pending"
        return FlowMemberStatus(place=number, task=planned.task, state=state)
    step, last = known[-1]
    state = _STATES.get(last.state, "waiting")
    if state == "done" and step < len(holders) - 1 and not is_over:
        state = "waiting"  # the next step of its chain is being added, or never will be
    return FlowMemberStatus(place=number, task=planned.task, state=state, id=last.id)


def _state(flow: EnqueuedFlow, marks: _Marks, members: Sequence[FlowMemberStatus]) -> FlowState:
    *_, failed, cancelled = marks
    if all(each is None for each in marks) and not any(each.id for each in members):
        return "unknown"
    if cancelled is not None:
        return "cancelled"
    if _is_over(marks):
        is_done = failed is None and all(each.state == "done" for each in members)
        return "done" if is_done else "failed"
    if any(each.state in _LIVELY for each in members):
        return "running"
    are_done = [each.state == "done" for each in members]
    can_run = [
        each.state == "pending" and all(are_done[n] for n in planned.after)
        for each, planned in zip(members, flow.members, strict=True)
    ]
    is_stuck = any(each.state == "dead" for each in members) and not any(can_run)
    return "failed" if is_stuck else "running"
