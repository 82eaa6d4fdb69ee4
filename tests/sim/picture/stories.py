"""Short runs written by hand, as rows, for pictures to be drawn of."""

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
        scenario="story", seed=7, nodes=3, adds=adds, consumers=consumers, chaos=20 * SECOND
    )
    return attrs.evolve(usual, **changes)  # type: ignore[arg-type]


@attrs.define
class Story:
    """Rows in the making."""

    time: int = 0
    rows: list[Row] = attrs.Factory(list)
    refs: int = 0
    clocks: dict[str, dict[str, int]] = attrs.Factory(dict)
    """Vector clocks, by lane."""
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
        lane = row.client if "." in row.kind and row.client else row.node
        if not lane:
            return
        clock = self.clocks.setdefault(lane, {})
        clock[lane] = clock.get(lane, 0) + 1
        self.places.setdefault(lane, len(self.places))
        row.clock = tuple(clock.get(name, 0) for name in self.places)

    def _join(self, row: Row, sent: Row) -> None:
        clock = self.clocks[row.node]
        for name, count in zip(self.places, sent.clock, strict=False):
            clock[name] = max(clock.get(name, 0), count)
        row.clock = tuple(clock.get(name, 0) for name in self.places)


def calm() -> list[Row]:
    """One job is added, copied, served, acknowledged, collected."""
    story = Story()
    _add_job(story, job_id(1), SECOND)
    _serve(story, job_id(1), "n1", 300_000)
    _ack(story, job_id(1), "n1", ("n2",), 25_000)
    story.add(SECOND, "end")
    return story.rows


def _add_job(
    story: Story, job: str, after: int, client: str = "p1", holders: tuple[str, ...] = ("n2",)
) -> None:
    detail = f"timeout=1000 replicate={len(holders) + 1} retry=1 body=hello"
    ref = story.op(after, client, "n1", "add", job, "", queue="q", detail=detail)
    sent = [
        story.send(900 if peer == holders[0] else 0, "n1", peer, "repljob", job) for peer in holders
    ]
    for number, peer in zip(sent, holders, strict=True):
        story.recv(700, number)
        story.add(0, "hold", peer, job=job, queue="q", cause="repljob")
        story.recv(650, story.send(0, peer, "n1", "gotjob", job))
    story.add(0, "hold", "n1", job=job, queue="q", cause="add")
    story.add(0, "queue", "n1", job=job, queue="q", cause="first")
    story.finish(800, client, "n1", "add.ok", job, ref)


def _serve(story: Story, job: str, node: str, after: int, client: str = "c1") -> None:
    story.add(after, "unqueue", node, job=job, queue="q", cause="served")
    story.add(0, "serve", node, job=job, queue="q", client=client, cause="served")
    story.add(600, "get.deliver", node, job=job, queue="q", client=client)


def _ack(
    story: Story, job: str, node: str, peers: tuple[str, ...], after: int, client: str = "c1"
) -> None:
    ref = story.op(after, client, node, "ack", job, "")
    story.add(500, "acked", node, job=job, queue="q", cause="ackjob")
    sent = [story.send(0, node, peer, "setack", job) for peer in peers]
    story.finish(400, client, node, "ack.ok", job, ref)
    for number, peer in zip(sent, peers, strict=True):
        story.recv(500, number)
        story.add(0, "acked", peer, job=job, queue="q", cause="setack")
        story.recv(700, story.send(0, peer, node, "gotack", job))
    for peer in peers:
        story.recv(800, story.send(0, node, peer, "deljob", job))
        story.add(0, "drop", peer, job=job, queue="q", cause="deljob")
    story.add(0, "drop", node, job=job, queue="q", cause="collected")


def cut(
    story: Story, after: int, near: tuple[str, ...], far: tuple[str, ...], kind: str = "cut"
) -> None:
    """Part two groups, or heal what was parted."""
    story.add(after, "heal" if kind == "heal" else kind, near[0], peer=far[0])
    for one in near:
        for other in far:
            if (one, other) != (near[0], far[0]):
                story.add(0, kind, one, peer=other)
            story.add(0, kind, other, peer=one)


def split_brain() -> list[Row]:
    """A cut hides the acknowledgement from the node that requeues: the job is delivered twice."""
    story, job, peers = Story(), job_id(1), ("n2", "n3")
    _add_job(story, job, SECOND, holders=peers)
    _serve(story, job, "n1", 200_000)
    cut(story, 80_000, ("n1",), peers)
    ref = story.op(120_000, "c1", "n1", "ack", job, "")
    story.add(500, "acked", "n1", job=job, queue="q", cause="ackjob")
    sent = [story.send(0, "n1", peer, "setack", job) for peer in peers]
    story.finish(600, "c1", "n1", "ack.ok", job, ref)
    for number in sent:
        story.recv(900, number, "lost")
    story.recv(800, story.send(520_000, "n2", "n3", "willqueue", job))
    story.recv(900, story.send(0, "n2", "n1", "willqueue", job), "lost")
    story.add(500_000, "queue", "n2", job=job, queue="q", cause="retry")
    story.recv(700, story.send(0, "n2", "n3", "queued", job))
    story.recv(700, story.send(0, "n2", "n1", "queued", job), "lost")
    _serve(story, job, "n2", 60_000, "c2")
    cut(story, 2 * SECOND, ("n1",), peers, "heal")
    _ack(story, job, "n2", ("n1", "n3"), 400_000, "c2")
    story.add(SECOND, "chaos.end")
    story.add(SECOND, "end")
    return story.rows


def crash() -> list[Row]:
    """The only holder dies with the job; an add stays unknown; a node is paused."""
    story, job = Story(), job_id(1)
    ref = story.op(
        SECOND, "p1", "n1", "add", job, "", queue="q", detail="timeout=0 replicate=1 retry=1 body=x"
    )
    story.add(500, "hold", "n1", job=job, queue="q", cause="add")
    story.add(0, "queue", "n1", job=job, queue="q", cause="first")
    story.finish(500, "p1", "n1", "add.ok", job, ref)
    story.op(400_000, "p1", "n1", "add", "", "", queue="q")
    story.add(1000, "crash", "n1", cause="kill")
    story.add(500_000, "pause", "n3")
    story.add(SECOND, "start", "n1", cause="empty")
    story.add(500_000, "resume", "n3")
    story.wall_error["n2"] = 2500
    story.add(200_000, "clock.step", "n2", detail="2500")
    story.add(SECOND, "end")
    return story.rows


def large(jobs: int = 2000, nodes: int = 5, seed: int = 1) -> list[Row]:
    """Many jobs, one after the other, some of them delivered twice; a cut now and then."""
    story, rng = Story(), random.Random(seed)
    for number in range(jobs):
        job, names = job_id(number), [f"n{n}" for n in range(1, nodes + 1)]
        holders = tuple(rng.sample(names[1:], 2))
        if number % 500 == 100:
            cut(story, 1000, ("n1", "n2"), tuple(names[2:]))
        if number % 500 == 160:
            cut(story, 1000, ("n1", "n2"), tuple(names[2:]), "heal")
        _add_job(story, job, rng.randrange(40_000), f"p{rng.randint(1, 5)}", holders)
        _serve(story, job, "n1", rng.randrange(3000), f"c{rng.randint(1, 5)}")
        if number % 40 == 0:
            story.add(1000, "queue", holders[0], job=job, queue="q", cause="retry")
            _serve(story, job, holders[0], 2000, "c1")
        _ack(story, job, "n1", holders, rng.randrange(5000))
        for one in names[1:]:
            story.recv(500, story.send(0, "n1", one, "ping"))
            story.recv(500, story.send(0, one, "n1", "pong"))
    story.add(SECOND, "end")
    return story.rows


def cut_plan() -> Plan:
    """The plan of `split_brain`."""
    return plan(
        faults=(Fault(kind="partition", at=1_300_000, hold=3 * SECOND, groups=((1,), (2, 3))),)
    )
