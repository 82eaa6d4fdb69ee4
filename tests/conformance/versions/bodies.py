"""What producers, workers and operators write into bodies of jobs: one of each, with its reader.

The bodies of jobs are those that an app adds at a node; the others are records with all fields.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import trio

from disque_trio.worker import App, codec, envelope, results, tokens
from disque_trio.worker.codec import Form
from disque_trio.worker.copies import NO_COPIES
from disque_trio.worker.cron import known
from disque_trio.worker.operating import notes
from disque_trio.worker.operating.notes import ORDERS
from disque_trio.worker.reporting import Report, RunningJob
from disque_trio.worker.runtime import Runtime, for_process
from disque_trio.worker.times import TaskTimes
from disque_trio.worker.timetable import records
from tests.client.fakenode import FakeNode
from tests.client.running import url
from tests.worker.runs import body, outcome
from tests.worker.test_enqueue import node_that_adds

READERS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "job": envelope.read,
    "result": codec.read_result,
    "token": tokens.read,
    "schedules": codec.body_reader(known.Record),
    "timetable": records.read,
    "note": notes.read_note,
    "order": notes.read_order,
    "answer": notes.read_answer,
}
RECORDS: Final = (
    codec.Envelope, codec.PackedEnvelope, codec.Result, tokens.Token, tokens.Member, known.Record,
    records.Entry, notes.Note, notes.Due, Report, RunningJob, TaskTimes, notes.Order, notes.Answer,
)  # fmt: skip
"""What bodies consist of."""
NOW: Final = 1_800_000_000.0
REPORT: Final = Report(
    name="w1", host="h", pid=7, version="0.1.0", app="shop:app", state="running", healthy=True,
    why="it answers", node="127.0.0.1:7711", queues=["mail"], slots=10, busy=1, held=2,
    unsettled=3, stuck=4, ended=5, answered_s=0.5, lag_s=0.25, rss_bytes=1 << 20, up_s=60.0,
    jobs=[RunningJob(id="D-1", task="mail.send", queue="mail", age_s=1.5, lease_s=9.0)],
    tasks=[
        TaskTimes(task="mail.send", failures=1, seconds=0.75, buckets={-4: 2, 4: 1}, longest=0.5),
    ],
)  # fmt: skip


def bodies() -> Iterator[tuple[str, bytes]]:
    """The kind of each body, a key of `READERS`, and the body."""
    with for_process(_runtime()):
        yield from _added("json")
        yield from _added("msgpack")
        batch = {"id": "b", "n": 3, "ttl": 900, "until": NOW + 600}
        asked = {"reply_to": "disque-trio.reply.r", "reply_key": "k", "result_ttl": 60}
        for headers in ({"batch": batch}, asked):
            yield from _left(headers)
    member = tokens.Member("D-1", 1.5, True, [("mail", "key")])
    token = tokens.Token(done=[0], ended=[(1, ("dead", "why"))], jobs=[(2, member)], is_over=True)
    yield "token", tokens.add("q", token, 600, NO_COPIES).words[2]
    yield "token", tokens.add("q", tokens.Token(is_cancelled=True), 600, NO_COPIES).words[2]
    due = notes.Due(name="mail.send", when="every 60 s", next=int(NOW), schedule="ada")
    entry = records.Entry(
        name="ada", task="mail.send", cron="30 2 * * *", tz="Europe/Berlin", missed="latest",
        within=600, partition=900, args=["ada"], kwargs={"copy": True},
        options={"queue": "mail", "headers": {"tenant": "acme"}, "result_ttl": 60},
        is_told=True, is_paused=True, since=int(NOW),
        revision=int(NOW * 1000),
    )  # fmt: skip
    for kind, record in (
        ("result", codec.Result("k", progress=(50.0, "half"))),
        ("result", codec.Result("k", error={"type": "Bad", "text": "no", "traceback": "File x"})),
        ("result", codec.Result("k", codec.Part(b"3.5"), task="resize")),
        ("result", codec.Result("k", task="resize", next="D-1")),
        ("schedules", known.Record({"@daily UTC": int(NOW)})),
        ("timetable", entry),
        ("timetable", records.Entry(name="bob", task="mail.send", every=60)),
        ("note", _note(due)),
        *(("order", notes.Order(order=each, reply_to="disque-trio.answers.k")) for each in ORDERS),
        ("answer", notes.Answer(report=REPORT, stacks="thread 1")),
    ):
        yield kind, codec.write(record, "json")


def _note(due: notes.Due) -> notes.Note:
    control, attempts = "disque-trio.control.w.k", {"mail.send": 25}
    return notes.Note(control=control, report=REPORT, schedules=[due], attempts=attempts)


def _runtime() -> Runtime:
    """Each recording has the same times and keys."""
    numbers = itertools.count(1)
    return Runtime(now=lambda: NOW, new_key=lambda: envelope.key_of(int(NOW * 1000), next(numbers)))


def app_at(node: FakeNode, form: Form = "json") -> tuple[App[None], Any, Any]:
    """Tasks whose jobs the samples are."""
    app = App(url(node), form=form)

    @app.task(name="resize", queue="cpu", aliases=("scale",))
    async def resize(image: int, by: float = 2.0) -> float:
        return image * by

    @app.task(name="publish", queue="web")
    async def publish(album: float, *, to: str = "all") -> None: ...

    return app, resize, publish


def _added(form: Form) -> list[tuple[str, bytes]]:
    """A plain job, one with a result, headers and a key; a chain; a batch that others follow."""
    with node_that_adds() as node:
        app, resize, publish = app_at(node, form)
        app.on_enqueue(lambda adding: adding.headers.update(traceparent="00-1"))

        async def add() -> None:
            async with app:
                await resize.enqueue(7)
                await resize.using(key="mine", result_ttl=60).enqueue(7, by=0.5)
                await (resize.call(7) | publish.using(delay=5).partial(to="ada")).enqueue()
                then = publish.call(1.0) | publish.using(key="last").call(2.0)
                await app.batch([resize.call(1), resize.call(2)], then, deadline=600)
                flow = app.flow(deadline=600)
                first = flow.add(resize.using(headers={"own": 1}).call(7))
                flow.add(publish.call(1.0) | publish.call(2.0), after=[first], parents=True)
                await flow.enqueue()

        trio.run(add)
        return _jobs(node)


def _left(headers: Mapping[str, Any]) -> list[tuple[str, bytes]]:
    """What a worker adds when a job with these headers has ended."""
    with node_that_adds() as node:
        outcome(app_at(node)[0], body("resize", 7, key="k", headers=headers))
        return _jobs(node)


def _jobs(node: FakeNode) -> list[tuple[str, bytes]]:
    return [(_kind(words[1]), words[2]) for words in node.requests if words[0] == b"ADDJOB"]


def _kind(queue: bytes) -> str:
    if queue.startswith(tokens.TOKENS.encode()):
        return "token"
    return "result" if queue.startswith(results.QUEUES.encode()) else "job"
