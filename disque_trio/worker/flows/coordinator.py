"""The task of a flow's coordinator: it adds members, and decides when the flow is over (decision
145).

A coordinator contains the members of its flow, and receives tokens as the collector of a batch
does. It adds each member when its predecessors are done, under a key that is fixed from the start,
and snoozes. When no member can run any more, or the flow is cancelled, it marks the flow as over,
and empties the flow's queue.
"""

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.errors import DisqueError
from disque_trio.client.settings import WINDOW
from disque_trio.terminal.counting import counted
from disque_trio.worker import tokens
from disque_trio.worker.batch_collector import Collector
from disque_trio.worker.codec import FlowStep
from disque_trio.worker.context import Job
from disque_trio.worker.continuations import PASSING
from disque_trio.worker.copies import Copies
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.enqueued import Enqueued
from disque_trio.worker.envelope import created_at
from disque_trio.worker.exceptions import Dead, Snooze
from disque_trio.worker.flows.building import FLOW, NotAFlowError, kept_s, read, request_of
from disque_trio.worker.flows.graph import Graph
from disque_trio.worker.flows.handles import FAILED, UNDONE, key_of
from disque_trio.worker.handles import JobHandle
from disque_trio.worker.membership import over
from disque_trio.worker.operating.asking import unwrap
from disque_trio.worker.options import Definition, place_of
from disque_trio.worker.pace import Pace
from disque_trio.worker.policies import Backoff
from disque_trio.worker.tally import DONE
from disque_trio.worker.tokens import SPARE_S, TOKENS, Member, Token, shortened

_LOOK_S: Final = 2.0
"""How long to wait for another token after one has arrived."""
_REST_S: Final = 0.2
"""How long to wait if none is expected."""
_ROUND_S: Final = 20.0
_REFUSED_S: Final = 1.0
"""The pause while no node accepts a member."""
_RETRY: Final = Backoff(attempts=10_000, base=1, most=30)
"""The retry policy: while nodes are down, retries continue for days."""
_SHOWN: Final = 10

_log: Final = logging.getLogger("disque_trio.worker.flows")


def definition() -> Definition:
    """The definition of the coordinators' task."""
    return Definition(name=FLOW, is_bound=True, retry=_RETRY)


def coordinator(
    enqueuer: Enqueuer, now: Callable[[], float], pace: Pace
) -> Callable[..., Coroutine[Any, Any, None]]:
    """The function of the task. `now` returns Unix time."""

    async def coordinate(
        job: Job[Any],
        flow: str,
        members: list[dict[str, Any]],
        until: float,
        replicate: int | None = None,
        sync: int | None = None,
    ) -> None:
        try:
            known = read({"members": members})
        except NotAFlowError as error:
            raise Dead(str(error)) from error
        copies = Copies(replicate=replicate, sync=sync)
        graph = Graph(len(known), after=[each.after for each in known])
        born = created_at(flow) or 0.0
        collector = Collector(enqueuer, TOKENS + flow, graph, born, now, copies, job.run, pace)
        if await over(collector.client, collector.queue) != "no":  # it was delivered twice
            await collector.sweep()
            return
        looking = _Look(job, enqueuer, flow, known, until, graph, collector)
        await looking.go_on()
        left_s = max(until - now(), 0) + SPARE_S
        if not looking.is_over:
            await collector.put_back(left_s)
            raise Snooze(looking.pause())
        await looking.end(left_s)
        await collector.finish(left_s)

    return coordinate


@attrs.define(eq=False)
class _Look:
    """One run of the coordinator of a flow."""

    job: Job[Any]
    enqueuer: Enqueuer
    flow: str
    members: Sequence[FlowStep]
    until: float
    graph: Graph
    collector: Collector

    @property
    def is_over(self) -> bool:
        """Are there no more members to add?"""
        return self.graph.is_complete or self.collector.now() > self.until

    async def go_on(self) -> None:
        """Take tokens and add members until no more tokens arrive, then ask nodes for other
        ends."""
        ends = anyio.current_time() + _ROUND_S
        is_new = self.job.snoozes == 0 and self.job.delivery == 1
        has_news = is_new or await self.collector.take_some(_REST_S)
        while True:
            has_news = await self._add_ready() or has_news
            if self.is_over or self.job.stopping or anyio.current_time() > ends:
                return
            if not has_news:
                break
            wait = _LOOK_S if self.graph.running() else _REST_S
            has_news = await self.collector.take_some(wait)
        await self.collector.look()
        if not self.is_over:
            await self._add_ready()

    async def _add_ready(self) -> bool:
        """Add the members that are ready. Returns whether one was added."""
        ready = [] if self.is_over else self.graph.ready()
        has_added = False
        for start in range(0, len(ready), WINDOW):
            some = ready[start : start + WINDOW]
            requests = [self._request(place) for place in some]
            results = await self.enqueuer.add_requests(requests)
            for place, result in zip(some, results, strict=True):
                if isinstance(result, PASSING):
                    self.job.log.debug("member %d is not added yet, retrying: %s", place, result)
                    continue
                if isinstance(result, Enqueued):
                    self.graph.members[place] = self._member(place, result.id)
                    has_added = True
                else:
                    self.graph.ended[place] = ("refused", shortened(str(result)))
                self.collector.changed.append(place)
        return has_added

    def _request(self, place: int) -> Any:
        ids = {n: member.id for n, member in self.graph.members.items()}
        copies = self.collector.copies
        try:
            return request_of(
                self.enqueuer, self.flow, self.until, copies, self.members, place, ids
            )
        except DisqueError as error:
            return error
        except ValueError as error:  # an option that this version does not support
            return DisqueError(str(error))

    def _member(self, place: int, id: str) -> Member:
        first, *others = self.members[place].steps
        ttl = first.options.get("ttl")
        life = ttl if isinstance(ttl, int) else definition().options.ttl
        expires = round(self.collector.now() + life)
        return Member(id, expires=expires, steps=[place_of(step) for step in others])

    def pause(self) -> float:
        """Seconds until the next look."""
        if self.job.stopping:
            return 0.0
        if self.graph.ready():
            return _REFUSED_S
        return self.collector.pause_s()

    async def end(self, left_s: float) -> None:
        """The flow is over: mark members that are not done, and cancel those of a cancelled
        flow."""
        if self.graph.is_cancelled:
            await self._mark([key_of("cancelled", n) for n in await self._cancel()], left_s)
            return
        final = self.graph.final()
        others = [n for n in range(self.graph.size) if final.get(n) != DONE]
        if not others:
            return
        shown = ", ".join(
            f"{n} {self.members[n].steps[0].task}: {final.get(n, ('not ended', ''))[0]}"
            for n in others[:_SHOWN]
        )
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        self.job.log.warning(
            "flow %s has ended, and %d of %s are not done: %s%s",
            self.flow, len(others), counted(self.graph.size, "member"), shown, more,
        )  # fmt: skip
        keys = [key_of(final[n][0], n) for n in others if final.get(n, DONE)[0] in UNDONE]
        await self._mark(keys, left_s)
        await self._mark([FAILED], left_s)  # last: a reader of this mark reads the others

    async def _mark(self, keys: Sequence[str], left_s: float) -> None:
        """Add marks with these keys."""
        queue, copies, keep = self.collector.queue, self.collector.copies, kept_s(self.until)
        marks = [tokens.add_mark(queue, left_s, copies, key, Token(), keep) for key in keys]
        for found in await self.collector.client.run_all(marks):
            unwrap(found)

    async def _cancel(self) -> list[int]:
        """Cancel the members that run or wait, and return their places. Dead ones remain."""
        client = self.collector.client
        running = {place: self.graph.members[place] for place in self.graph.running()}
        if ids := [each.id for each in running.values() if not each.steps]:
            await client.ackjob(*ids)
        for member in running.values():
            if member.steps:
                places = (None, *member.steps)
                await JobHandle(member.id, enqueuer=self.enqueuer, places=places).cancel()
        for place in self.graph.ready():  # an interrupted look may have added them
            await client.run(commands.cancel_key(*place_of(self.members[place].steps[0])))
        if running:
            await self.collector.take_some(_REST_S)  # tokens of members that were done just before
        return [place for place in running if self.graph.ended.get(place) != DONE]
