"""The topics `flow` and `flows`: the members of a flow, and the flows of a cluster.

The job that adds the members, the coordinator, contains all of them, and ends with the flow. A flow
that was shown before is kept here, so that its end is shown, too.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.client import Client
from disque_trio.client.command import Command
from disque_trio.client.errors import ConnectionFailedError, DisqueError
from disque_trio.client.nodes import Nodes
from disque_trio.client.records import Ending, JobDetails
from disque_trio.client.settings import DEFAULT_URL
from disque_trio.observe.job_search import FoundJob, WorkerReports, summary
from disque_trio.observe.queue_counts import QueueCounts
from disque_trio.observe.scanning import scan
from disque_trio.observe.survey import Survey
from disque_trio.observe.values import Json, name_fields, word
from disque_trio.worker.codecs import Codecs, Zlib
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.envelope import as_coded, read, task_at_start, task_of
from disque_trio.worker.flows import asking
from disque_trio.worker.flows.building import FLOW, place_in
from disque_trio.worker.flows.handles import CANCELLED, EnqueuedFlow, FlowMemberStatus, FlowStatus
from disque_trio.worker.membership import Membership
from disque_trio.worker.operating.asking import Found, at_each
from disque_trio.worker.operating.jobs import Jobs
from disque_trio.worker.operating.key_holders import key_holder
from disque_trio.worker.operating.plans import MistakeError
from disque_trio.worker.operating.states import Copy
from disque_trio.worker.tokens import TOKENS

MOST: Final = 50
"""The maximum number of flows in a list."""
_REMEMBERED: Final = 200
_ASKED: Final = 2000
"""The maximum number of members of listed flows whose states are requested."""
_SHOWN: Final = 200
"""The maximum number of members of a flow whose jobs or ends are requested at once."""
_ALIVE: Final = ("leased", "dead", "backing-off", "waiting")
"""States of members of which nodes have jobs; the most interesting ones first."""
_WORDS: Final[Mapping[str, str]] = {"leased": "running", "waiting": "queued"}
"""Names of states in the console, where they differ."""
_AGAIN_S: Final = 30.0
"""The interval between two searches for a flow that was not found."""
_FAR: Final = 1e11
"""Times after it, in Unix seconds, are invalid."""
_LONGEST: Final = 4 << 20
"""The maximum size of a body that is read: the limit of its app is unknown here."""


def reader() -> Enqueuer:
    """Return an enqueuer that only reads bodies: without codecs, or packed by `Zlib`."""
    codecs = Codecs.of((), (Zlib(),), _LONGEST, _LONGEST)
    return Enqueuer(DEFAULT_URL, "json", _LONGEST, codecs=codecs)


@attrs.define(eq=False)
class KnownFlow:
    """A flow that was seen."""

    flow: EnqueuedFlow
    queue: str
    until: float
    """Its deadline, in Unix seconds; 0 if unknown."""
    added_ms: int
    ends: dict[str, Ending | None] = attrs.Factory(dict)
    """By id of a member that is done: its ending; None if no node has a record of it."""
    cancelled_at: float | None = None
    """In Unix seconds."""

    def state(self, member: FlowMemberStatus) -> str:
        """Return the state of a member, as the console names it. A cancelled flow acknowledges the
        members that run or wait, so their jobs end as if they were done."""
        if member.state == "skipped" and self.cancelled_at is not None:
            return "cancelled"
        if member.state != "done":
            return _WORDS.get(member.state, member.state)
        ending = self.ends.get(member.id)
        if ending is None:
            return "done"
        if self.cancelled_at is not None and ending.at > self.cancelled_at:
            return "cancelled"
        return ending.outcome if ending.outcome in ("cancelled", "expired") else "done"


@attrs.frozen
class Answering:
    """A client that skips nodes that are known to be silent, because queries for keys ask all
    nodes."""

    client: Any

    @property
    def nodes(self) -> Nodes:
        """The nodes of the client."""
        found: Nodes = self.client.nodes
        return found

    async def run(self, command: Command[Any], /) -> Any:
        """Return the result of a command, from the first node that can run it."""
        return await self.client.run(command)

    async def ask(self, address: Address, asked: Sequence[Command[Any]], /) -> Any:
        """Return the results of commands from this node. Raise `ConnectionFailedError` at once if
        it is silent."""
        if silence := self.client.silent.get(str(address)):
            raise ConnectionFailedError(silence.reason)
        return await self.client.ask(address, asked)


@attrs.define(eq=False)
class Flows:
    """The flows that were seen."""

    survey: Survey
    _reader: Enqueuer = attrs.Factory(reader)
    _known: dict[str, KnownFlow] = attrs.Factory(dict)
    """By id; the one that was seen last is last."""
    _ids: dict[str, str] = attrs.Factory(dict)
    """By the name of the flow in its members: the id of its coordinator."""
    _sought: dict[str, float] = attrs.Factory(dict)
    """By the same name: when it was searched for, by anyio's clock."""

    async def flow(self, counts: QueueCounts, args: Json) -> tuple[Json, dict[str, str]]:
        """Return one flow with its members, or why the job is no flow. Raise `MistakeError` for an
        invalid id and for a flow that cannot be read."""
        id = word(args, "id")
        if not id.startswith("D-"):
            raise MistakeError(f"'{id}' is not the id of a flow: ids begin with D-")
        await self.survey.look()
        found = await Jobs(self.survey.client).find(id)
        try:
            known = self._note(found.items) or self._known.get(id)
        except DisqueError as error:
            raise MistakeError(f"the flow cannot be read here: {error}") from None
        if known is None:
            return {"id": id, "found": False, "why": _why(found.items)}, found.unreached
        status = await self._status(known)
        reports = await WorkerReports.ask(self.survey)
        now = time.time() + self.survey.clock_ms / 1000
        jobs = await self._jobs(status.members, reports, counts, now)
        await self._learn_ends(known, status.members)
        members = [_member(each, known, jobs.get(each.id)) for each in status.members]
        return {
            **_row(known, status),
            "found": True,
            "counts": Counter(each["state"] for each in members),
            "members": members,
            "coordinator": summary(found.items, reports, counts, now).row()
            if found.items
            else None,
        }, found.unreached

    async def flows(self) -> tuple[Json, dict[str, str]]:
        """Return the flows that have not ended, the latest first, then the ended ones that were
        seen before."""
        await self.survey.look()
        found = await scan(
            self.survey.client,
            states=("queued", "active", "dead"),
            filters={"body": FLOW},
            fits=lambda job: _task(job) == FLOW,
        )
        alive, unread = [], 0
        for job in sorted(found.items, key=lambda each: -each.ctime):
            try:
                known = self._note([Copy(node=_ANY, job=job)])
            except DisqueError:
                unread += 1  # for example encoded by codecs of its app
            else:
                alive += [known] if known else []
        over = [each for each in reversed(self._known.values()) if each not in alive]
        rows, left = [], _ASKED
        for each in [*alive, *over][:MOST]:
            left -= len(each.flow.members)
            rows.append(_row(each, await self._status(each) if left >= 0 else None))
        return {
            "flows": rows,
            "is_cut": found.is_cut or len(alive) + len(over) > MOST,
            "unread": unread,
        }, found.unreached

    async def of_member(self, id: str, copies: Sequence[Copy]) -> str:
        """Return the id of the flow of which the job is a member or the coordinator; empty if there
        is none or it is not found. For a job that has ended, only flows that were seen before are
        searched if nodes have no body."""
        for known in self._known.values():
            if id == known.flow.id or id in known.ends:
                return known.flow.id
        body = next((each.job.body for each in copies if each.job.body), None)
        if body is None or as_coded(body) is not None:
            return ""
        try:
            envelope = read(body, _LONGEST)
        except DisqueError:
            return ""
        if envelope.task == FLOW:
            return id
        member = Membership.of(envelope.headers)
        if member is None or not member.may_be_cancelled:
            return ""
        name = member.queue.removeprefix(TOKENS)
        now = anyio.current_time()
        if name not in self._ids and now - self._sought.get(name, -_AGAIN_S) >= _AGAIN_S:
            self._sought[name] = now
            _forget_first(self._sought)
            if found := await self._search(name, copies[0].job.queue or ""):
                self._ids[name] = found
                _forget_first(self._ids)
        return self._ids.get(name, "")

    async def _search(self, name: str, queue: str) -> str:
        """Find the coordinator of a flow: by its key in the queue of the members, else by a
        search."""
        holder = await key_holder(self._answering, place_in(queue, name))
        if holder is not None:
            return holder.id
        found = await scan(
            self.survey.client,
            states=("queued", "active", "dead"),
            filters={"body": name},
            fits=lambda job: _task(job) == FLOW,
            most=1,
        )
        return found.items[0].id if found.items else ""

    @property
    def _answering(self) -> Answering:
        return Answering(self.survey.client)

    def _note(self, copies: Sequence[Copy]) -> KnownFlow | None:
        """Keep the flow of a coordinator; return None if the job is none. Raise `DisqueError`."""
        job = next((each.job for each in copies if each.job.body), None)
        if job is None or _task(job) != FLOW:
            return None
        known = self._known.pop(job.id, None)
        if known is None:
            kwargs = asking.arguments(self._reader, job.body or b"") or {}
            flow = asking.handle(self._reader, job, kwargs)
            until = _moment(kwargs.get("until"))
            known = KnownFlow(flow, job.queue or "", until, job.ctime // 1_000_000)
            self._ids[str(kwargs["flow"])] = job.id
        self._known[job.id] = known
        _forget_first(self._known)
        return known

    async def _status(self, known: KnownFlow) -> FlowStatus:
        status = await asking.status(known.flow, self._answering)
        if status.state == "cancelled" and known.cancelled_at is None:
            mark = await key_holder(self._answering, (known.flow.tokens, CANCELLED))
            jobs = await self._shown([mark.id] if mark else [], is_ended=True)
            known.cancelled_at = min((each.added for each in jobs.items), default=time.time())
        return status

    async def _jobs(
        self,
        members: Sequence[FlowMemberStatus],
        reports: WorkerReports,
        counts: QueueCounts,
        now: float,
    ) -> dict[str, FoundJob]:
        """Return by id the first `_SHOWN` jobs of members in the states of `_ALIVE`."""
        alive = [each for state in _ALIVE for each in members if each.state == state]
        found = await self._shown([each.id for each in alive[:_SHOWN]])
        copies: dict[str, list[Copy]] = {}
        for each in found.items:
            if each.job.body is not None:
                copies.setdefault(each.job.id, []).append(each)
        return {id: summary(some, reports, counts, now) for id, some in copies.items()}

    async def _learn_ends(self, known: KnownFlow, members: Sequence[FlowMemberStatus]) -> None:
        """Request how members have ended: some may have expired or been cancelled."""
        done = [each.id for each in members if each.state == "done" and each.id not in known.ends]
        if not done:
            return
        found = await self._shown(done[:_SHOWN], is_ended=True)
        known.ends |= dict.fromkeys(done[:_SHOWN])
        known.ends |= {each.job.id: each.job.ending for each in found.items if each.job.ending}

    async def _shown(self, ids: Sequence[str], *, is_ended: bool = False) -> Found[Copy]:
        """Return the copies of these jobs at all nodes."""
        client: Client = self.survey.client
        asked = [commands.show(id, is_ended=is_ended) for id in ids]

        async def ask(node: Address) -> list[Copy]:
            replies = await client.ask(node, asked) if asked else []
            return [Copy(node=node, job=each) for each in replies if isinstance(each, JobDetails)]

        return await at_each(client, ask)


_ANY: Final = Address()
"""The node of a copy where it does not matter."""


def _forget_first(known: dict[str, Any]) -> None:
    while len(known) > _REMEMBERED:
        del known[next(iter(known))]


def _moment(value: object) -> float:
    """Return Unix seconds from an untrusted body; 0 if the value is no time."""
    return float(value) if isinstance(value, int | float) and 0 <= value < _FAR else 0.0


def _task(job: JobDetails) -> str:
    """Return the task of a body, which may be long."""
    body = job.body or b""
    return task_at_start(body) or task_of(body)


def _why(copies: Sequence[Copy]) -> str:
    if copies:
        task = next(filter(None, (_task(each.job) for each in copies)), "")
        return f"it is not a flow, but a job{' of task ' * bool(task)}{task}"
    return (
        "no node that answers has it: it has ended, or was never added. After a flow has ended, "
        "nodes do not know which jobs were its members"
    )


def _row(known: KnownFlow, status: FlowStatus | None) -> Json:
    """Return a flow without its members. Without a status, its state was not requested."""
    members = known.flow.members
    return {
        "id": known.flow.id,
        **name_fields(known.queue, "queue"),
        "added_ms": known.added_ms,
        "until_ms": round(known.until * 1000),
        "size": len(members),
        "tasks": list(dict.fromkeys(each.task for each in members)),
        "state": status and status.state,
        "counts": status and Counter(map(known.state, status.members)),
    }


def _member(member: FlowMemberStatus, known: KnownFlow, job: FoundJob | None) -> Json:
    planned = known.flow.members[member.place]
    fields: Json = {
        "task": member.task,
        "after": _ranges(planned.after),
        "steps": len(planned.places),
        "state": known.state(member),
        "id": member.id,
    }
    if job is None:
        return fields
    row = job.row()
    names = ("state", "attempt", "limit", "error", "due_s", "worker", "since_s")
    return fields | {name: row[name] for name in names}


def _ranges(places: Sequence[int]) -> list[list[int]]:
    """Return the first and last place of each contiguous range: a member can depend on hundreds."""
    found: list[list[int]] = []
    for place in sorted(places):
        if found and found[-1][1] == place - 1:
            found[-1][1] = place
        else:
            found.append([place, place])
    return found
