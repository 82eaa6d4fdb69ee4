"""What happened to one job, as nodes that trace it tell (`observe.timeline`)."""

from typing import Any, Final

import attrs

from disque_trio.sim.picture.page import content
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row
from tests.sim.picture.examples import Example

NOON: Final = 1_790_000_000_000_000
WORKER: Final = "mailer-7@web3"
OTHER: Final = "mailer-2@web1"


def rows(job: str, queue: str = "mail", worker: str = WORKER) -> list[Row]:
    """A worker has it and is silent; n1 queues it again, and another worker has it now."""
    story = Example(time=NOON)
    copies = "replicate=2 retry=60000 delay=0 made=1 body=1"

    def at(after: int, kind: str, node: str, **facts: object) -> None:
        story.add(after, kind, node, job=job, queue=queue, **facts)

    def tell(after: int, node: str, peer: str, cause: str) -> None:
        story.recv(700, story.send(after, node, peer, cause, job))

    at(0, "hold", "n1", cause="add", detail=copies)
    tell(200, "n1", "n2", "repljob")
    at(0, "hold", "n2", cause="repljob", detail=copies)
    tell(0, "n2", "n1", "gotjob")
    at(100, "add.ok", "n1", client="checkout@web2")
    at(0, "queue", "n1", cause="first")
    at(420_000, "unqueue", "n1", cause="served")
    at(0, "serve", "n1", client=OTHER)
    tell(300, "n1", "n2", "working")
    tell(59_500_000, "n1", "n2", "willqueue")
    story.recv(600, story.send(900, "n2", "n1", "willqueue", job))
    at(500_000, "queue", "n1", cause="retry")
    tell(200, "n1", "n2", "queued")
    at(90_000, "unqueue", "n1", cause="served")
    at(0, "serve", "n1", client=worker)
    tell(300, "n1", "n2", "working")
    return story.rows


def ended(job: str) -> list[Row]:
    """The same, and the worker has done it."""
    before = rows(job)
    story = Example(time=before[-1].time, rows=before, refs=100)
    story.add(2_400_000, "acked", "n1", job=job, queue="mail", cause="ackjob")
    story.recv(800, story.send(0, "n1", "n2", "setack", job))
    story.add(0, "acked", "n2", job=job, queue="mail", cause="setack")
    story.recv(700, story.send(0, "n2", "n1", "gotack", job))
    return story.rows


def told(id: str, rows: list[Row], **others: Any) -> dict[str, Any]:
    """The answer of the topic."""
    plan = Plan(scenario="live", seed=0, nodes=3)
    node = {"rows": 20, "why": "trouble", "on": True, "here": True, "omitted": 0}
    node |= {"right_ms": 0.0, "error_ms": 1.0}
    return {
        "id": id,
        "traced": True,
        "why": "traced since it failed or was requeued",
        "nodes": [{**node, "node": f"127.0.0.1:771{n}", "name": f"n{n}"} for n in (1, 2, 3)],
        "clocks": ["n2: clock corrected by −12 ± 3 ms"],
        "run": content(plan, rows, None, ""),
        **others,
    }


def untraced(id: str) -> dict[str, Any]:
    """Of a job of which no node keeps a trace."""
    why = "it is not traced: “Trace on” records its events from then on"
    answer = told(id, [], why=why, traced=False, clocks=[], run=None)
    off = {"rows": 0, "why": None, "on": False}
    return {**answer, "nodes": [{**node, **off} for node in answer["nodes"]]}


def many(job: str, count: int) -> list[Row]:
    """A trace of so many rows: copies that are made again and again."""
    first = rows(job)[:8]
    step = first[-1].time - first[0].time + 50_000
    found = [
        attrs.evolve(row, time=row.time + step * (n // 8), ref=row.ref + n * 100 if row.ref else 0)
        for n in range(count)
        for row in (first[n % 8],)
    ]
    return sorted(found, key=lambda row: row.time)
