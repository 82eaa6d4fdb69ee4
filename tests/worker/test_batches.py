"""Batches: what members and the collector carry, and what the collector makes of tokens."""

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
import trio

from disque_trio.client import DisqueError
from disque_trio.client.records import KeyHolder
from disque_trio.statemachine.base import Failure, Reply
from disque_trio.testing.inline.kit import Inline
from disque_trio.worker import (
    App,
    Batch,
    BatchFailedError,
    Dead,
    Enqueued,
    NotOpenError,
    batch_collector,
)
from disque_trio.worker.engine.records import Done, Outcome
from disque_trio.worker.exceptions import JobFailedError, NoResultError
from tests.client.fakenode import Answer, FakeNode, fake_node
from tests.client.running import url
from tests.worker.runs import body, outcome
from tests.worker.test_enqueue import ADDED, HELLO, added, node_that_adds

THEN = {"task": "publish", "key": "k9", "args": ["a"], "options": {"queue": "web"}}


def app_at(node: FakeNode) -> tuple[App[None], Any, Any]:
    app = App(url(node))

    @app.task(name="resize", queue="cpu")
    async def resize(image: int) -> int:
        return image

    @app.task(name="publish", queue="web")
    async def publish(album: str) -> None: ...

    return app, resize, publish


async def test_the_collector_is_added_before_the_members() -> None:
    with node_that_adds() as node:
        app, resize, publish = app_at(node)
        async with app:
            batch = await app.batch(map(resize.call, [7, 8]), publish.call("a"), deadline=600)

        (queue, collector, options), first, second, roster = added(node)
        assert (queue, collector["task"], collector["key"]) == (
            "web",
            "disque-trio.collect",
            batch.id,
        )
        assert options["RETRY"] == "20"
        given = collector["kwargs"]
        assert (given["batch"], given["size"], given["headers"]) == (batch.id, 2, {})
        assert given["then"] == THEN | {"key": given["then"]["key"]}
        assert 500 < given["until"] - time.time() <= 600
        assert [each["headers"]["batch"] for _, each, _ in (first, second)] == [
            {"id": batch.id, "n": n, "ttl": 600 + 86_400, "until": given["until"]} for n in (0, 1)
        ]
        assert roster[0] == f"disque-trio.batch.{batch.id}"
        assert [(n, each["id"]) for n, each in roster[1]["jobs"]] == [
            (n, job.id) for n, job in enumerate(jobs_of(batch))
        ]


async def test_without_anything_that_follows_the_members_send_their_results() -> None:
    with node_that_adds() as node:
        app, resize, publish = app_at(node)
        async with app:
            await app.batch([resize.call(7), resize.call(8) | publish.call("a")], deadline=600)

        assert [each["headers"]["result_ttl"] for _, each, _ in added(node)] == [600, 600]


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_a_member_that_is_done_leaves_a_token(backend: str) -> None:
    with node_that_adds() as node:
        until = time.time() + 900.5
        headers = {"batch": {"id": "b", "n": 3, "ttl": 900 + 86_400, "until": until}}

        assert outcome(app_at(node)[0], body("resize", 7, headers=headers), backend) == Done()

        assert added(node) == [
            ("disque-trio.batch.b", {"done": [3]}, {"RETRY": "60", "TTL": f"{900 + 86_400}"})
        ]


def test_a_chain_leaves_a_token_when_its_last_step_is_done() -> None:
    with node_that_adds() as node:
        headers = {"batch": {"id": "b", "n": 3, "ttl": 900}, "then": [THEN]}

        outcome(app_at(node)[0], body("resize", 7, headers=headers))

        [(queue, step, _)] = added(node)
        assert (queue, step["headers"]) == ("web", {"batch": headers["batch"]})


def jobs_of(batch: Batch[Any]) -> list[Enqueued[Any]]:
    """All of them were added."""
    return [job for job in batch.jobs if isinstance(job, Enqueued)]


def tokens(*members: Sequence[int]) -> Reply:
    """What GETJOB answers."""
    return [given(n, json.dumps({"done": each}).encode()) for n, each in enumerate(members)]


def given(n: int, what: bytes) -> Reply:
    return [b"q", b"D-%d" % n, what, b"nacks", 0, b"additional-deliveries", 0]


def collected(
    *found: Reply,
    size: int = 3,
    until: float = 2e9,
    shown: Reply = None,
    if_failed: str = "run",
    own: dict[str, Any] | None = None,
    **headers: Any,
) -> tuple[Outcome, list[tuple[str, Any]]]:
    """What a collector makes of these tokens, and which jobs it has added and acknowledged."""
    left = [*found, None]

    def getjob() -> Answer:
        return [left.pop(0) if left else None]

    answers: dict[bytes, Any] = {b"HELLO": HELLO, b"ADDJOB": ADDED, b"SHOW": [shown]}
    answers |= {b"GETJOB": getjob, b"ACKJOB": [1], b"RELEASE": [1]}
    features = b"features:unique,release,tokens\r\nuptime_in_milliseconds:100000\r\n"
    answers |= {b"INFO": [features], b"QSTAT": [None]}
    with fake_node(answers) as node:
        kwargs = {"batch": "b", "size": size, "then": THEN, "headers": headers, "until": until}
        kwargs["if_failed"] = if_failed
        what = body(
            "disque-trio.collect", kwargs=kwargs, key="b", headers={"snoozes": 2, **(own or {})}
        )
        end = outcome(app_at(node)[0], what, queue=b"web")
        told: list[tuple[str, Any]] = []
        for name, *words in node.requests:
            if name == b"ADDJOB":
                told.append((words[0].decode(), json.loads(words[1])))
            elif name in (b"ACKJOB", b"RELEASE"):
                told.append((name.decode(), [word.decode() for word in words]))
        return end, told


def test_a_complete_batch_adds_what_follows_and_then_acknowledges_its_tokens() -> None:
    end, told = collected(tokens([0]), tokens([1], [0, 2]), reply_to="disque-trio.reply.me")

    assert end == Done()
    assert told == [
        (
            "web",
            {
                "task": "publish",
                "key": "k9",
                "args": ["a"],
                "headers": {"reply_to": "disque-trio.reply.me"},
            },
        ),
        ("disque-trio.batch.b", {"done": [], "is_over": True}),
        ("ACKJOB", ["D-0", "D-0", "D-1"]),
    ]


def test_a_batch_without_members_is_complete() -> None:
    end, told = collected(size=0)

    assert (end, [where for where, _ in told]) == (Done(), ["web", "disque-trio.batch.b"])


def test_an_incomplete_batch_merges_its_tokens_and_looks_again() -> None:
    end, told = collected(tokens([2], [0, 2]))

    assert end == Done()
    assert told[:2] == [
        ("disque-trio.batch.b", {"done": [0, 2]}),
        ("ACKJOB", ["D-0", "D-1"]),
    ]
    queue, again = told[2]
    assert (queue, again["task"], again["headers"]["snoozes"]) == ("web", "disque-trio.collect", 3)


def test_one_token_is_given_back() -> None:
    _, told = collected(tokens([0, 2]))

    assert [where for where, _ in told] == ["RELEASE", "web"]


HOLDER: Reply = [b"id", b"D-1", b"state", b"queued", b"nodes", [], b"queued-at", []]
ROSTER = given(9, b'{"jobs":[[0,{"id":"D-0"}],[2,{"id":""}]]}')


def test_after_the_deadline_what_follows_is_told_who_is_late_or_skipped() -> None:
    end, told = collected(tokens([1]), [ROSTER], until=1.0)
    assert (end, told[0][0]) == (Done(), "web")

    end, told = collected(
        tokens([1]), [ROSTER], until=1.0, if_failed="skip", reply_to="disque-trio.reply.me"
    )
    assert (end, told[0][0]) == (Done(), "disque-trio.reply.me")
    assert told[0][1]["error"]["text"].startswith("2 of 3 members failed: 0 (late: it had")


def test_what_follows_a_part_of_a_batch_is_not_added() -> None:
    end, told = collected(tokens([1]), until=1.0, reply_to="disque-trio.reply.me")

    assert end == Done()
    assert [where for where, _ in told] == [
        "disque-trio.reply.me",
        "disque-trio.batch.b",
        "ACKJOB",
    ]
    assert told[0][1]["error"]["text"].startswith("its producer ended before it added 2")


def test_a_collector_whose_twin_has_finished_ends() -> None:
    assert collected(shown=HOLDER) == (Done(), [])


@pytest.mark.parametrize("shown", [None, Failure(b"ERR unknown command")])
def test_without_tokens_it_looks_again(shown: Reply) -> None:
    _, [(_, again)] = collected(shown=shown)

    assert again["headers"]["snoozes"] == 3


async def test_what_follows_has_its_result_in_any_process(disque_inline: Inline) -> None:
    app = App()

    @app.task(name="double", queue="q", result_ttl=60)
    async def double(number: int) -> int:
        return 2 * number

    @app.task(name="fail", queue="q")
    async def fail() -> int:
        raise Dead("no")

    async with app:
        for then in (double.call(2), double.call(1) | double.partial()):
            batch = await app.batch([double.call(1)], then)
            assert batch.then is not None
            await disque_inline.run_all(app)
            assert await app.result(batch.then.id, 10) == 4
            assert batch.then.blocking.result(10) == 4
            assert batch.then.task == "double"

        batch = await app.batch([fail.call()], double.call(2), if_failed="skip")
        assert batch.then is not None
        await disque_inline.run_all(app, may_die=True)
        with pytest.raises(JobFailedError, match="1 of 1 member failed"):
            await app.result(batch.then.id, 10)


async def test_what_follows_without_a_result_names_its_task(disque_inline: Inline) -> None:
    app = App()

    @app.task(name="mute", queue="q")
    async def mute() -> None: ...

    async with app:
        batch: Batch[None] = await app.batch([], mute.call())
        assert batch.then is not None
        with pytest.raises(
            NotOpenError, match="of mute sends no result: set result_ttl of the task"
        ):
            await batch.then.result()


@pytest.mark.parametrize("id", ["D-7", None])
def test_a_collector_whose_twin_has_finished_finds_what_follows(
    monkeypatch: pytest.MonkeyPatch, id: str | None
) -> None:
    async def key_holder(_: Any, place: Any) -> KeyHolder | None:
        assert place[0] == "web"
        return None if id is None else KeyHolder(id=id, state="queued", nodes=(), queued_at=())

    monkeypatch.setattr(batch_collector, "key_holder", key_holder)
    end, _ = collected(shown=HOLDER, own={"result_ttl": 60})

    assert isinstance(end, Done)
    kept = json.loads(end.result or b"")
    assert (kept.get("next"), "error" in kept) == (id, id is None)


def test_what_is_no_token_counts_for_nothing() -> None:
    _, told = collected(tokens([7, -1]), [given(9, b"[]")], size=1)

    assert told[0] == ("disque-trio.batch.b", {"done": []})


# Waiting.


def job(key: str, result: object, after: float = 5) -> Enqueued[Any]:
    async def wait(_: str, timeout: float | None) -> object:
        with trio.move_on_after(1e9 if timeout is None else timeout):
            await trio.sleep(after)
            if isinstance(result, Exception):
                raise result
            return result
        raise NoResultError("D-1", None, "it has not ended")

    return Enqueued("D-1", key, "t", "q", wait, enqueuer=App()._enqueuer)


async def test_waiting_for_a_batch_is_for_all_results(autojump_clock: object) -> None:
    assert await Batch("b", [job("k1", 1), job("k2", 2)]).wait() == [1, 2]


async def test_what_is_missing_and_what_has_failed_is_told(autojump_clock: object) -> None:
    failure, refusal = JobFailedError("ValueError", "x"), NoResultError("D-1", "dead", "it is dead")
    jobs: list[Enqueued[Any] | DisqueError] = [
        job("k1", 1),
        job("k2", failure),
        refusal,
        job("k3", 3, after=20),
    ]

    text = "^1 job has reported no result in time, and 2 jobs have failed$"
    with pytest.raises(BatchFailedError, match=text) as raised:
        await Batch("b", jobs).wait(timeout=12)

    assert raised.value.missing == ["k3"]
    assert raised.value.failed == {"k2": failure, "2": refusal}
    assert str(BatchFailedError(["k3"], {})) == "1 job has reported no result in time"
    assert str(BatchFailedError([], {"k2": failure})) == "1 job has failed"


async def test_an_error_of_a_member_is_raised_in_no_group(autojump_clock: object) -> None:
    error = NotOpenError("closed")

    with pytest.raises(NotOpenError) as raised:
        await Batch("b", [job("k1", 1), job("k2", error), job("k3", error)]).wait()

    assert raised.value is error


@pytest.mark.parametrize("deadline", [-5, 0, 0.5, True, "x", 10**10])
@pytest.mark.parametrize("is_followed", [True, False])
async def test_a_deadline_is_a_whole_number_of_seconds(deadline: Any, is_followed: bool) -> None:
    app, resize, publish = app_at(FakeNode({}, port=7711))

    async with app:
        with pytest.raises(ValueError, match=f"deadline={deadline!r} must be a whole number of s"):
            await app.batch(
                [resize.call(1)], publish.call("a") if is_followed else None, deadline=deadline
            )


@pytest.mark.parametrize(
    ("calls", "then"), [(["x"], None), (["x"], "good"), (["good"], "x"), (["good", None], None)]
)
async def test_members_and_what_follows_are_calls(calls: list[Any], then: Any) -> None:
    with node_that_adds() as node:
        app, resize, publish = app_at(node)
        made = [resize.call(1) if each == "good" else each for each in calls]
        async with app:
            with pytest.raises(ValueError, match=r"('x'|None) is not a call: write task\.call"):
                await app.batch(made, publish.call("a") if then == "good" else then)

        assert added(node) == []


async def test_what_to_do_about_failures_is_one_of_two() -> None:
    app, resize, publish = app_at(FakeNode({}, port=7711))

    async with app:
        with pytest.raises(ValueError, match="if_failed='no' must be one of run, skip"):
            await app.batch([resize.call(1)], publish.call("a"), if_failed="no")  # type: ignore[arg-type]
