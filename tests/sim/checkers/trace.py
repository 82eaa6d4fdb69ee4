"""Hand-written histories: the rows of a run that never was, told in seconds."""

import itertools
from collections.abc import Sequence
from typing import Final

from disque_trio.sim.checkers.duplicates import CAUSES
from disque_trio.sim.checkers.verdict import Verdict, judge
from disque_trio.sim.scenarios.plan import ClockPlan, Consumer, Expect, Fault, LinkPlan, Plan
from disque_trio.tracing.rows import Row

ALL_CAUSES: Final = tuple(cause for cause in CAUSES if cause != "DX")
JOB: Final = "D-01234567-AAAAAAAAAAAAAAAAAAAAAAAA-003d"
"""An id with an odd number of minutes: at least once."""
ONCE: Final = "D-01234567-BBBBBBBBBBBBBBBBBBBBBBBB-003c"
UPTIME: Final = 1_000_000


class Trace:
    """Rows in the making. Nodes n1 … and clients keep vector clocks, as the simulator would."""

    def __init__(
        self,
        nodes: int = 3,
        *,
        expect: Expect | None = None,
        faults: Sequence[Fault] = (),
        link: LinkPlan | None = None,
        clocks: Sequence[ClockPlan] = (),
        config: Sequence[tuple[str, str]] = (),
        consumers: Sequence[str] = ("n1",),
        vector_clocks: bool = True,
        is_live: bool = False,
        no_processor: int = 0,
    ) -> None:
        self.plan = Plan(
            scenario="by hand",
            seed=0,
            nodes=nodes,
            link=link or LinkPlan(),
            clocks=tuple(clocks),
            config=(("cluster-node-timeout", "1000"), *config),
            faults=tuple(faults),
            consumers=tuple(
                Consumer(name=f"c{node[1:]}", node=int(node[1:]), queues=("q",))
                for node in consumers
            ),
            vector_clocks=vector_clocks,
            expect=expect or Expect(duplicates=ALL_CAUSES),
        )
        self._is_live = is_live
        self._no_processor = no_processor
        self._rows: list[Row] = []
        self._refs = itertools.count(1)
        for node in range(1, nodes + 1):
            self.row(-1, "start", f"n{node}", cause="fresh")

    # One row.

    def row(
        self,
        time: float,
        kind: str,
        node: str = "",
        *,
        job: str = "",
        queue: str = "",
        client: str = "",
        peer: str = "",
        cause: str = "",
        detail: str = "",
        ref: int = 0,
        mono: int | None = None,
        wall: int = 0,
    ) -> None:
        """A row, whatever it says."""
        if mono is None:
            mono = UPTIME + round(time * 1000)
        self._rows.append(
            Row(
                time=round(time * 1_000_000),
                kind=kind,
                node=node,
                job=job,
                queue=queue or ("q" if job else ""),
                client=client,
                peer=peer,
                cause=cause,
                detail=detail,
                ref=ref,
                mono=mono,
                wall=wall,
            )
        )

    # What goes together.

    def add(
        self,
        time: float,
        job: str = JOB,
        *,
        node: str = "n1",
        to: Sequence[str] = ("n2", "n3"),
        options: str = "replicate=3 retry=10 ttl=3600",
        body: str = "b",
        is_queued: bool = True,
        outcome: str = "ok",
        record: str = "",
    ) -> None:
        """A job comes into the world on a node and is copied to others, within 10 ms. Of each copy
        the node may tell what it says."""
        ref = next(self._refs)
        self.row(
            time, "add.invoke", node, queue="q", client="p1", ref=ref,
            detail=f"timeout=1000 {options} body={body}",
        )  # fmt: skip
        self.row(time, "hold", node, job=job, cause="add", detail=record)
        for peer in to:
            self.copy(time, node, peer, job, record=record)
        if is_queued:
            self.row(time + 0.005, "queue", node, job=job, cause="first")
        if outcome == "ok":
            self.row(time + 0.01, "add.ok", node, job=job, client="p1", ref=ref)
        else:
            self.row(
                time + 0.01, f"add.{outcome}", node, queue="q", client="p1", ref=ref, cause="NOREPL"
            )

    def copy(
        self,
        time: float,
        node: str,
        peer: str,
        job: str = JOB,
        lag: float = 0.002,
        *,
        record: str = "",
    ) -> None:
        """REPLJOB, and what it leads to."""
        self.send(time, "repljob", node, peer, job, lag=lag, detail=f"jobs={job} holders={node}")
        self.row(time + lag, "hold", peer, job=job, cause="repljob", detail=record)

    def send(
        self,
        time: float,
        name: str,
        node: str,
        peer: str,
        job: str = JOB,
        *,
        lag: float | None = 0.002,
        lost: float | None = None,
        detail: str = "",
    ) -> None:
        """A message; with `lag` None it is still under way at the end, with `lost` gone by then."""
        ref = next(self._refs)
        self.row(time, "send", node, peer=peer, job=job, cause=name, detail=detail, ref=ref)
        if lost is not None:
            self.row(lost, "lost", node, peer=peer, job=job, cause=name, detail="broken", ref=ref)
        elif lag is not None:
            self.row(
                time + lag, "recv", peer, peer=node, job=job, cause=name, detail=detail, ref=ref
            )

    def working(self, time: float, node: str, *peers: str, job: str = JOB) -> None:
        """WORKING to all of them."""
        for peer in peers:
            self.send(time, "working", node, peer, job)

    def serve(
        self,
        time: float,
        node: str = "n1",
        client: str = "c1",
        job: str = JOB,
        body: str = "b",
        *,
        lag: float = 0.001,
    ) -> None:
        """A node delivers, and the client gets it."""
        self.row(time, "unqueue", node, job=job, cause="served")
        self.row(time, "serve", node, job=job, client=client, cause="served")
        self.deliver(time + lag, node, client, job, body)

    def deliver(
        self, time: float, node: str = "n1", client: str = "c1", job: str = JOB, body: str = "b"
    ) -> None:
        """A client has the job in hand."""
        self.row(time, "get.deliver", node, job=job, client=client, detail=f"body={body}")

    def requeue(self, time: float, node: str, cause: str = "retry", job: str = JOB) -> None:
        """A node queues the job again."""
        self.row(time, "queue", node, job=job, cause=cause)

    def ack(self, time: float, node: str = "n1", client: str = "c1", job: str = JOB) -> None:
        """ACKJOB at a node that has the job."""
        ref = next(self._refs)
        self.row(time, "ack.invoke", node, job=job, client=client, ref=ref)
        self.row(time + 0.001, "acked", node, job=job, cause="ackjob")
        self.row(time + 0.002, "ack.ok", node, job=job, client=client, ref=ref, detail="1")

    def fastack(self, time: float, node: str = "n1", client: str = "c1", job: str = JOB) -> None:
        """FASTACK at a node that has the job."""
        ref = next(self._refs)
        self.row(time, "fastack.invoke", node, job=job, client=client, ref=ref)
        self.row(time + 0.001, "drop", node, job=job, cause="fastack")
        self.row(time + 0.002, "fastack.ok", node, job=job, client=client, ref=ref, detail="1")

    def setack(self, time: float, node: str, peer: str, job: str = JOB) -> None:
        """SETACK to a holder, who confirms."""
        self.send(time, "setack", node, peer, job, detail="holders=3")
        self.row(time + 0.002, "acked", peer, job=job, cause="setack")
        self.send(time + 0.002, "gotack", peer, node, job, detail="known")

    def collect(self, time: float, node: str, *peers: str, job: str = JOB) -> None:
        """All have confirmed: the record goes, here and there."""
        self.row(time, "drop", node, job=job, cause="collected")
        for peer in peers:
            self.send(time, "deljob", node, peer, job)
            self.row(time + 0.002, "drop", peer, job=job, cause="deljob")

    def cut(self, time: float, one: Sequence[str], other: Sequence[str], until: float) -> None:
        """Nothing goes between these nodes for a while."""
        for node, peer in [*itertools.product(one, other), *itertools.product(other, one)]:
            self.row(time, "cut", node, peer=peer)
            self.row(until, "heal", node, peer=peer)

    def crash(self, time: float, node: str, back: float | None = None) -> None:
        """A node loses everything."""
        self.row(time, "crash", node, cause="kill")
        if back is not None:
            self.row(back, "start", node, cause="empty")

    def heal(self, time: float, *, rejoins: bool = True, core: str = "") -> None:
        """The end of the chaos, after which the nodes, or those of the core, find each other
        soon."""
        self.row(time, "chaos.end")
        if rejoins:
            self.row(time + 0.5, "rejoin")
        everyone = ",".join(f"n{n + 1}" for n in range(self.plan.nodes))
        self.row(time, "heal.end", detail=core or everyone)

    # The end.

    def rows(self) -> list[Row]:
        """All rows, in order of time, with their vector clocks."""
        rows = sorted(self._rows, key=lambda row: row.time)
        if self.plan.vector_clocks:
            _stamp(rows, self.plan.nodes)
        return rows

    def verdict(self, end: float | None = None) -> Verdict:
        """What the judge says, maybe after some more time."""
        if end is not None:
            self.row(end, "end")
        judging = judge(self.plan, is_live=self._is_live, no_processor=self._no_processor)
        for row in self.rows():
            judging.see(row)
        return judging.finish()


def _stamp(rows: list[Row], nodes: int) -> None:
    """Vector clocks: nodes first, then clients as they come; messages and requests join them."""
    places = {f"n{n}": n - 1 for n in range(1, nodes + 1)}
    clocks: dict[str, dict[int, int]] = {}
    sent: dict[int, dict[int, int]] = {}
    for row in rows:
        actor = row.client if row.client and row.kind != "serve" else row.node
        if not actor:
            continue
        place = places.setdefault(actor, len(places))
        clock = clocks.setdefault(actor, {})
        if row.kind == "recv":
            _join(clock, sent.get(row.ref, {}))
        clock[place] = clock.get(place, 0) + 1
        if row.kind == "send":
            sent[row.ref] = dict(clock)
        row.clock = tuple(clock.get(n, 0) for n in range(max(clock) + 1))


def _join(clock: dict[int, int], other: dict[int, int]) -> None:
    for place, count in other.items():
        clock[place] = max(clock.get(place, 0), count)


def broken(verdict: Verdict) -> list[str]:
    """The properties that do not hold, each once."""
    return list(dict.fromkeys(violation.property for violation in verdict.violations))
