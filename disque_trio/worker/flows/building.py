"""`Flow`: the producer's definition of a flow, its members and their order."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.terminal.counting import counted
from disque_trio.worker import checks, codec, steps
from disque_trio.worker.codec import FlowStep, Step
from disque_trio.worker.copies import Copies
from disque_trio.worker.enqueue import Call, Enqueuer, check_call, step_options
from disque_trio.worker.enqueued import Enqueued
from disque_trio.worker.flows.handles import EnqueuedFlow, Planned
from disque_trio.worker.kinds import OF_APP, check_kinds
from disque_trio.worker.options import CARRIED, Options, Place, place_of
from disque_trio.worker.requests import Request
from disque_trio.worker.runtime import runtime
from disque_trio.worker.tokens import LEASE_S, SPARE_S, TOKENS

FLOW: Final = "disque-trio.flow"
"""The task of coordinators."""
MOST_MEMBERS: Final = 1000
MOST_PARENTS: Final = 100
"""The maximum number of predecessors of a member with `parents=True`."""
_ID: Final = "D-" + 38 * "0"
"""A placeholder with the length of an id."""


@attrs.frozen(eq=False)
class FlowMember:
    """A member of a flow, for `after` of later members."""

    place: int
    """Its position in the flow, from 0."""
    task: str


@attrs.define(eq=False, repr=False)
class Flow:
    """A flow: a job is added when its predecessors are done (`App.flow`)."""

    _enqueuer: Enqueuer
    _deadline: int
    _queue: str | None = None
    _members: list[FlowMember] = attrs.field(init=False, factory=list)
    _calls: list[tuple[Call[Any], list[int], bool]] = attrs.field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        check_kinds({"deadline": self._deadline}, OF_APP)
        if self._queue is not None:
            Options(queue=self._queue)

    def add(
        self, call: Call[Any], after: Iterable[FlowMember] = (), *, parents: bool = False
    ) -> FlowMember:
        """Add a member: a call or a chain. It is added as a job when all members in `after` are
        done; these must have been added to this flow before. With `parents`, its handler finds
        their job ids in `Job.parents`, 100 at most. Raises `ValueError` for an invalid call or
        member, and `TypeError` if `after` is not iterable."""
        check_call(call)
        if len(self._members) >= MOST_MEMBERS:
            raise ValueError(
                f"a flow has at most {MOST_MEMBERS} members; let a member add another flow"
            )
        if call.is_open:
            raise ValueError(f"{call.name}: `partial` is for later steps of a chain")
        if isinstance(after, FlowMember):
            raise ValueError(f"{call.name}: after={checks.shown(after)} must be a list of members")
        named = checks.iterated(after, f"{call.name}: after")
        before = list(dict.fromkeys(self._place(each, call.name) for each in named))
        if parents and len(before) > MOST_PARENTS:
            raise ValueError(
                f"{call.name}: parents=True with {counted(len(before), 'member')} in after: "
                f"its headers have room for {MOST_PARENTS}"
            )
        member = FlowMember(len(self._members), call.name)
        self._members.append(member)
        self._calls.append((call, before, parents))
        return member

    def _place(self, member: FlowMember, name: str) -> int:
        place = member.place if isinstance(member, FlowMember) else -1
        if not 0 <= place < len(self._members) or self._members[place] is not member:
            raise ValueError(
                f"{name}: after has {checks.shown(member)}, which is not a member of this flow: "
                "pass what its `add` has returned"
            )
        return place

    async def enqueue(self) -> EnqueuedFlow:
        """Add the flow; workers add its members. Raises `ValueError` and `NotEncodableError` before
        anything is added, and otherwise as `Task.enqueue`."""
        request, made = self._made()
        return made(await self._enqueuer.add(request))

    @property
    def blocking(self) -> "BlockingFlow":
        """The same for threads and code without an event loop."""
        return BlockingFlow(self)

    def _made(self) -> tuple[Request[Any], "_Handle"]:
        if not self._calls:
            raise ValueError("the flow is empty: add members to it")
        enqueuer = self._enqueuer
        flow, until = runtime().new_key(), runtime().now() + self._deadline
        members = [_member(enqueuer, *each) for each in self._calls]
        for place in range(len(members)):
            request_of(enqueuer, flow, until, enqueuer.copies, members, place, None)
        queue = enqueuer.queue_of_looks(self._queue or self._calls[0][0].definition.options.queue)
        copies = enqueuer.copies
        arguments = {"flow": flow, "members": members, "until": until, **copies.as_options()}
        ttl = math.ceil(self._deadline) + SPARE_S
        options = Options(
            queue=queue, ttl=ttl, lease=LEASE_S, replicate=copies.replicate, sync=copies.sync
        )
        step = Step(FLOW, flow, kwargs=arguments, options=step_options(options))
        request = steps.request(enqueuer, step, options, [], {}, kept_s(until))
        return request, _Handle(enqueuer, flow, place_of(step), planned(members))


@attrs.frozen(eq=False)
class BlockingFlow:
    """Adds a flow with the client of the current thread."""

    _flow: Flow

    def enqueue(self) -> EnqueuedFlow:
        """Add the flow (`Flow.enqueue`)."""
        request, made = self._flow._made()
        return made(self._flow._enqueuer.add_blocking(request))


def place_in(queue: str, flow: str) -> Place:
    """The queue and key by which nodes find the coordinator of a flow."""
    return place_of(Step(FLOW, flow, options={"queue": queue}))


@attrs.frozen
class _Handle:
    """Creates the handle of a flow that is being added."""

    enqueuer: Enqueuer
    flow: str
    place: Place
    members: Sequence[Planned]

    def __call__(self, added: Enqueued[Any]) -> EnqueuedFlow:
        return EnqueuedFlow(added.id, self.members, self.place, TOKENS + self.flow, self.enqueuer)


def planned(members: Sequence[FlowStep]) -> list[Planned]:
    """The members as a handle needs them."""
    return [
        Planned(
            task=each.steps[0].task,
            after=tuple(each.after),
            places=tuple(place_of(step) for step in each.steps),
        )
        for each in members
    ]


def kept_s(until: float) -> int:
    """How long nodes keep the keys of a flow, in seconds."""
    return max(steps.KEEP_S, math.ceil(until - runtime().now()))


def _member(enqueuer: Enqueuer, call: Call[Any], after: list[int], has_parents: bool) -> FlowStep:
    calls = (call, *call.then)
    made = [each.step(enqueuer.form) for each in calls]
    adding = enqueuer.adding(call.name, call.options(), made[0].key)
    headers: dict[str, Any] = {**adding.headers, **call.headers}
    if (result_ttl := calls[-1].definition.options.result_ttl) is not None:
        headers |= enqueuer.kept(result_ttl)
    return FlowStep(steps=made, after=after, headers=headers, has_parents=has_parents)


def request_of(
    enqueuer: Enqueuer,
    flow: str,
    until: float,
    copies: Copies,
    members: Sequence[FlowStep],
    place: int,
    ids: Mapping[int, str] | None,
) -> Request[Any]:
    """The ADDJOB of a member; `ids` are those of its predecessors, by place, or None to check only
    that the job fits. Raises `NotEncodableError`, and `ValueError`."""
    member = members[place]
    first, *others = member.steps
    left = max(math.ceil(until - runtime().now()), 0)
    batch: dict[str, Any] = {"id": flow, "n": place, "ttl": left + SPARE_S, "until": until}
    batch |= {"flow": True, **copies.as_options()}
    if member.has_parents:
        batch["parents"] = [_ID if ids is None else ids.get(each, "") for each in member.after]
    headers = {**member.headers, "batch": batch}
    headers |= {name: each for name, each in first.options.items() if name in CARRIED}
    if others:
        headers["then"] = others
    options = Options(**first.options)
    return steps.request(enqueuer, first, options, [], headers, kept_s(until))


class NotAFlowError(DisqueError):
    """A job that is not a valid coordinator of a flow."""


def read(kwargs: Mapping[str, Any]) -> list[FlowStep]:
    """The members in the arguments of a coordinator. Raises `NotAFlowError`."""
    try:
        members = codec.read_flow(kwargs["members"])
    except (*codec.BAD_INPUT, LookupError) as error:
        raise NotAFlowError(f"unreadable: the members of the flow: {error}") from error
    for place, member in enumerate(members):
        if not member.steps or not all(0 <= each < place for each in member.after):
            raise NotAFlowError(f"member {place} of the flow has no step, or is after itself")
    return members
