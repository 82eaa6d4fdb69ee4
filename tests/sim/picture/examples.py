"""Short runs, as rows written by hand, to draw."""

import random

import attrs

from disque_trio.sim.model.clock import EPOCH_MS
from disque_trio.sim.scenarios.plan import Add, Consumer, Fault, Plan
from disque_trio.tracing.rows import Row

SECOND = 1_000_000


def job_id(number: int, *, ttl: int = 0x05A1) -> str:
    """An id as nodes make them; an odd `ttl` is at least once."""
    return f"D-{number:08x}-{number:024d}-{ttl:04x}"


def plan(**changes: object) -> Plan:
    """Three nodes, one producer, one consumer."""
    adds = (Add(at=SECOND, node=1, producer="p1", queue="q", body="hello", replicate=2, retry_s=1),)
    consumers = (Consumer(name="c1", node=2, queues=("q",)),)
    usual = Plan(
        scenario="example", seed=7, nodes=3, adds=adds, consumers=consumers, chaos=20 * SECOND
    )
    return attrs.evolve(usual, **changes)  # type: ignore[arg-type]


@attrs.define
class Example:
    """Rows in the making."""

    time: int = 0
    rows: list[Row] = attrs.Factory(list)
    refs: int = 0
    clocks: dict[str, dict[str, int]] = attrs.Factory(dict)
    """Vector clocks, by lifeline."""
    places: dict[str, int] = attrs.Factory(dict)
    wall_error: dict[str, int] = attrs.Factory(dict)

    def add(self, after: int, kind: str, node: str = "", **facts: object) -> Row:
        """One more row, so many microseconds after the last."""
        self.time += after
        row = Row(self.time, kind, node, **facts)  # type: ignore[arg-type]
        self._stamp(row)
        self.rows.append(row)
        return row

    def send(
        self, after: int, node: str, peer: str, cause: str, job: str = "", detail: str = ""
    ) -> int:
        """A message leaves; its number."""
        self.refs += 1
        self.add(after, "send", node, peer=peer, cause=cause, job=job, ref=self.refs, detail=detail)
        return self.refs

    def recv(self, after: int, ref: int, kind: str = "recv") -> None:
        """A message arrives, or is lost."""
        sent = next(row for row in reversed(self.rows) if row.kind == "send" and row.ref == ref)
        ends = (sent.node, sent.peer) if kind == "lost" else (sent.peer, sent.node)
        row = self.add(after, kind, ends[0], peer=ends[1], cause=sent.cause, job=sent.job, ref=ref)
        if kind == "recv":
            self._join(row, sent)

    def op(
        self,
        after: int,
        client: str,
        node: str,
        name: str,
        job: str,
        outcome: str = "ok",
        **facts: object,
    ) -> int:
        """A client's command; its outcome comes 2 ms later, or with `finish`."""
        self.refs += 1
        known = "" if name == "add" else job
        self.add(after, f"{name}.invoke", node, client=client, job=known, ref=self.refs, **facts)
        if outcome:
            self.finish(2000, client, node, f"{name}.{outcome}", job, self.refs)
        return self.refs

    def finish(self, after: int, client: str, node: str, kind: str, job: str, ref: int) -> None:
        """The outcome of a client's command."""
        self.add(after, kind, node, client=client, job=job, ref=ref)

    def _stamp(self, row: Row) -> None:
        row.mono = 1_000_000 + row.time // 1000 if row.node else 0
        row.wall = EPOCH_MS + row.time // 1000 + self.wall_error.get(row.node, 0) if row.node else 0
        lifeline = row.client if "." in row.kind and row.client else row.node
        if not lifeline:
            return
        clock = self.clocks.setdefault(lifeline, {})
        clock[lifeline] = clock.get(lifeline, 0) + 1
        self.places.setdefault(lifeline, len(self.places))
        row.clock = tuple(clock.get(name, 0) for name in self.places)

    def _join(self, row: Row, sent: Row) -> None:
        clock = self.clocks[row.node]
        for name, count in zip(self.places, sent.clock, strict=False):
            clock[name] = max(clock.get(name, 0), count)
        row.clock = tuple(clock.get(name, 0) for name in self.places)


def calm() -> list[Row]:
    """One job is added, copied, served, acknowledged, collected."""
    example = Example()
    _add_job(example, job_id(1), SECOND)
    _serve(example, job_id(1), "n1", 300_000)
    _ack(example, job_id(1), "n1", ("n2",), 25_000)
    example.add(SECOND, "end")
    return example.rows


def _add_job(
    example: Example, job: str, after: int, client: str = "p1", holders: tuple[str, ...] = ("n2",)
) -> None:
    detail = f"timeout=1000 replicate={len(holders) + 1} retry=1 body=hello"
    ref = example.op(after, client, "n1", "add", job, "", queue="q", detail=detail)
    sent = [
        example.send(900 if peer == holders[0] else 0, "n1", peer, "repljob", job)
        for peer in holders
    ]
    for number, peer in zip(sent, holders, strict=True):
        example.recv(700, number)
        example.add(0, "hold", peer, job=job, queue="q", cause="repljob")
        example.recv(650, example.send(0, peer, "n1", "gotjob", job))
    example.add(0, "hold", "n1", job=job, queue="q", cause="add")
    example.add(0, "queue", "n1", job=job, queue="q", cause="first")
    example.finish(800, client, "n1", "add.ok", job, ref)


def _serve(example: Example, job: str, node: str, after: int, client: str = "c1") -> None:
    example.add(after, "unqueue", node, job=job, queue="q", cause="served")
    example.add(0, "serve", node, job=job, queue="q", client=client, cause="served")
    example.add(600, "get.deliver", node, job=job, queue="q", client=client)


def _ack(
    example: Example, job: str, node: str, peers: tuple[str, ...], after: int, client: str = "c1"
) -> None:
    ref = example.op(after, client, node, "ack", job, "")
    example.add(500, "acked", node, job=job, queue="q", cause="ackjob")
    sent = [example.send(0, node, peer, "setack", job) for peer in peers]
    example.finish(400, client, node, "ack.ok", job, ref)
    for number, peer in zip(sent, peers, strict=True):
        example.recv(500, number)
        example.add(0, "acked", peer, job=job, queue="q", cause="setack")
        example.recv(700, example.send(0, peer, node, "gotack", job))
    for peer in peers:
        example.recv(800, example.send(0, node, peer, "deljob", job))
        example.add(0, "drop", peer, job=job, queue="q", cause="deljob")
    example.add(0, "drop", node, job=job, queue="q", cause="collected")


def cut(
    example: Example, after: int, near: tuple[str, ...], far: tuple[str, ...], kind: str = "cut"
) -> None:
    """Cut the links between two groups, or heal them."""
    example.add(after, "heal" if kind == "heal" else kind, near[0], peer=far[0])
    for one in near:
        for other in far:
            if (one, other) != (near[0], far[0]):
                example.add(0, kind, one, peer=other)
            example.add(0, kind, other, peer=one)


def split_brain() -> list[Row]:
    """A cut hides the acknowledgement from the node that requeues: the job is delivered twice."""
    example, job, peers = Example(), job_id(1), ("n2", "n3")
    _add_job(example, job, SECOND, holders=peers)
    _serve(example, job, "n1", 200_000)
    cut(example, 80_000, ("n1",), peers)
    ref = example.op(120_000, "c1", "n1", "ack", job, "")
    example.add(500, "acked", "n1", job=job, queue="q", cause="ackjob")
    sent = [example.send(0, "n1", peer, "setack", job) for peer in peers]
    example.finish(600, "c1", "n1", "ack.ok", job, ref)
    for number in sent:
        example.recv(900, number, "lost")
    example.recv(800, example.send(520_000, "n2", "n3", "willqueue", job))
    example.recv(900, example.send(0, "n2", "n1", "willqueue", job), "lost")
    example.add(500_000, "queue", "n2", job=job, queue="q", cause="retry")
    example.recv(700, example.send(0, "n2", "n3", "queued", job))
    example.recv(700, example.send(0, "n2", "n1", "queued", job), "lost")
    _serve(example, job, "n2", 60_000, "c2")
    cut(example, 2 * SECOND, ("n1",), peers, "heal")
    _ack(example, job, "n2", ("n1", "n3"), 400_000, "c2")
    example.add(SECOND, "chaos.end")
    example.add(SECOND, "end")
    return example.rows


def crash() -> list[Row]:
    """The only holder dies with the job; an add stays unknown; a node is paused."""
    example, job = Example(), job_id(1)
    ref = example.op(
        SECOND, "p1", "n1", "add", job, "", queue="q", detail="timeout=0 replicate=1 retry=1 body=x"
    )
    example.add(500, "hold", "n1", job=job, queue="q", cause="add")
    example.add(0, "queue", "n1", job=job, queue="q", cause="first")
    example.finish(500, "p1", "n1", "add.ok", job, ref)
    example.op(400_000, "p1", "n1", "add", "", "", queue="q")
    example.add(1000, "crash", "n1", cause="kill")
    example.add(500_000, "pause", "n3")
    example.add(SECOND, "start", "n1", cause="empty")
    example.add(500_000, "resume", "n3")
    example.wall_error["n2"] = 2500
    example.add(200_000, "clock.step", "n2", detail="2500")
    example.add(SECOND, "end")
    return example.rows


def large(jobs: int = 2000, nodes: int = 5, seed: int = 1) -> list[Row]:
    """Many jobs, one after the other, some of them delivered twice; a cut now and then."""
    example, rng = Example(), random.Random(seed)
    for number in range(jobs):
        job, names = job_id(number), [f"n{n}" for n in range(1, nodes + 1)]
        holders = tuple(rng.sample(names[1:], 2))
        if number % 500 == 100:
            cut(example, 1000, ("n1", "n2"), tuple(names[2:]))
        if number % 500 == 160:
            cut(example, 1000, ("n1", "n2"), tuple(names[2:]), "heal")
        _add_job(example, job, rng.randrange(40_000), f"p{rng.randint(1, 5)}", holders)
        _serve(example, job, "n1", rng.randrange(3000), f"c{rng.randint(1, 5)}")
        if number % 40 == 0:
            example.add(1000, "queue", holders[0], job=job, queue="q", cause="retry")
            _serve(example, job, holders[0], 2000, "c1")
        _ack(example, job, "n1", holders, rng.randrange(5000))
        for one in names[1:]:
            example.recv(500, example.send(0, "n1", one, "ping"))
            example.recv(500, example.send(0, one, "n1", "pong"))
    example.add(SECOND, "end")
    return example.rows


def cut_plan() -> Plan:
    """The plan of `split_brain`."""
    return plan(
        faults=(Fault(kind="partition", at=1_300_000, hold=3 * SECOND, groups=((1,), (2, 3))),)
    )
