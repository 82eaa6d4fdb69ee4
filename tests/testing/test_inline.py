"""Jobs that a test runs when it says so, without a server."""

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any
from unittest.mock import ANY

import anyio
import attrs
import pytest

from disque_trio.testing.inline.kit import EndlessError, Inline, JobDiedError
from disque_trio.testing.inline.node import InlineError
from disque_trio.worker import (
    App,
    Cancel,
    Dead,
    Fixed,
    JobFailedError,
    NotEncodableError,
    NotOpenError,
    Retry,
    Snooze,
    current_job,
)

Kinds = pytest.mark.parametrize("kind", ["trio", "asyncio"])


@attrs.frozen
class Order:
    """An argument."""

    number: int
    paid_at: datetime | None = None


app = App[None]()
seen: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    seen.clear()


@app.task(name="mail.send", queue="mail", result_ttl=60)
async def send(to: str, text: str = "hello") -> int:
    seen.append((to, text, current_job().attempt))
    return len(text)


@app.task(name="ship", queue="shop")
def ship(order: Order, *, express: bool = False) -> Order:
    seen.append((order, express))
    return order


ERRORS = {
    "value": ValueError("no"),
    "once": ValueError("once"),
    "retry": Retry(after=5),
    "dead": Dead("stolen"),
    "cancel": Cancel("obsolete"),
    "snooze": Snooze(60),
}


@app.task(name="fail", queue="shop", retry=Fixed([10, 20]))
async def fail(how: str) -> None:
    job = current_job()
    seen.append((how, job.attempt))
    if (how == "once" and job.attempt > 1) or job.snoozes == 2:
        return
    raise ERRORS[how]


@app.task(name="slow", queue="shop", timeout=0.01, retry=Fixed([]))
async def slow() -> None:
    await anyio.sleep(60)


def run(kind: str, story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """With the app open."""

    async def held() -> None:
        with anyio.fail_after(60):
            async with app:
                await story()

    anyio.run(held, backend=kind)


# Jobs that were added.


@Kinds
def test_a_job_stays_until_it_is_run(kind: str, disque_inline: Inline) -> None:
    async def story() -> None:
        await send.enqueue("ada", text="hi")
        assert seen == []
        assert [(job.task, job.args, job.kwargs) for job in disque_inline.jobs()] == [
            ("mail.send", ["ada", "hi"], {})
        ]
        [ran] = await disque_inline.run_all(app)
        assert (ran.task, ran.end, ran.result) == ("mail.send", "done", 2)

    run(kind, story)
    assert seen == [("ada", "hi", 1)]
    assert disque_inline.jobs() == []


def test_code_without_an_event_loop_adds_jobs_too(disque_inline: Inline) -> None:
    added = send.blocking.enqueue("ada")

    assert [job.id for job in disque_inline.jobs(send)] == [added.id]
    disque_inline.blocking.run_all(app)
    assert seen == [("ada", "hello", 1)]


def test_arguments_come_out_as_their_types(disque_inline: Inline) -> None:
    order = Order(7, datetime(2026, 1, 1, tzinfo=UTC))
    ship.blocking.enqueue(order, express=True)
    disque_inline.blocking.run_all(app)

    assert seen == [(order, True)]


def test_what_production_refuses_is_refused(disque_inline: Inline) -> None:
    with pytest.raises(NotEncodableError):
        ship.blocking.enqueue(7)  # type: ignore[arg-type]
    with pytest.raises(NotOpenError):
        anyio.run(send.enqueue, "ada", backend="trio")


def test_the_node_keeps_unique_jobs_single_and_knows_copies(disque_inline: Inline) -> None:
    first = send.using(unique="k", replicate=3).blocking.enqueue("ada")
    again = send.using(unique="k").blocking.enqueue("ada")

    assert first.id == again.id
    assert len(disque_inline.jobs()) == 1


def test_an_app_that_waits_for_two_copies_adds_its_jobs(disque_inline: Inline) -> None:
    send.using(replicate=3, sync=2).blocking.enqueue("ada")
    send.using(sync=2).blocking.enqueue("eve")

    assert len(disque_inline.jobs()) == 2


def test_no_other_test_sees_the_jobs(disque_inline: Inline) -> None:
    assert disque_inline.jobs() == []


# Asserting.


def test_jobs_are_found_by_their_arguments(disque_inline: Inline) -> None:
    send.using(delay=600).blocking.enqueue("ada@x", text="hi")
    ship.blocking.enqueue(Order(1))

    [job] = disque_inline.assert_enqueued(send, args=("ada@x", ANY), within=600)
    assert job.due_in == 600
    disque_inline.assert_enqueued(send, kwargs={"text": "hi"})
    disque_inline.assert_enqueued(ship, args=(Order(1),), queue="shop", count=1)
    disque_inline.assert_enqueued(ship, args=(Order(1),), kwargs={"express": False})


def test_near_misses_are_listed_nearest_first(disque_inline: Inline) -> None:
    ship.blocking.enqueue(Order(1))
    send.blocking.enqueue("bob", "hi")
    send.using(delay=600).blocking.enqueue("ada@x")

    with pytest.raises(AssertionError) as raised:
        disque_inline.assert_enqueued(send, args=("ada@x",), within=60)

    assert str(raised.value).splitlines() == [
        "no job of mail.send that fits is waiting; there are:",
        "  mail.send('ada@x') in 600 s, queue mail: is due in 600 s, not within 60 s",
        "  mail.send('bob', 'hi'), queue mail: to is 'bob', not 'ada@x', text is 'hi', not 'hello'",
        "  ship({'number': 1, 'paid_at': None}), queue shop: is of another task",
    ]


@pytest.mark.parametrize(("count", "said"), [(1, "2 jobs"), (3, "2 jobs"), (0, "2 jobs")])
def test_a_wrong_number_is_said(disque_inline: Inline, count: int, said: str) -> None:
    send.blocking.enqueue("ada")
    send.blocking.enqueue("ada")

    with pytest.raises(
        AssertionError, match=f"^{said} of mail.send that fits is waiting, and {count}"
    ):
        disque_inline.assert_enqueued(send, args=("ada",), count=count)


def test_arguments_that_the_task_has_not_are_a_mistake_of_the_test(disque_inline: Inline) -> None:
    send.blocking.enqueue("ada")

    with pytest.raises(TypeError, match="no argument txt"):
        disque_inline.assert_enqueued(send, kwargs={"txt": "hi"})


def test_without_jobs_that_is_said(disque_inline: Inline) -> None:
    with pytest.raises(AssertionError, match="there are none"):
        disque_inline.assert_enqueued(send)


# Performing.


@Kinds
def test_a_task_is_performed_as_a_job_would_be(kind: str, disque_inline: Inline) -> None:
    async def story() -> None:
        assert await disque_inline.perform(send, "ada", attempt=3) == 5
        assert await disque_inline.perform(ship.call(Order(1), express=True)) == Order(1)

    run(kind, story)
    assert seen == [("ada", "hello", 3), (Order(1), True)]


@pytest.mark.parametrize(
    ("how", "attempt", "said"),
    [
        ("value", 2, "fail, attempt 2: retried, again in 20 s"),
        ("value", 3, "fail, attempt 3: dead, failed 3 of 3 times: ValueError: no"),
        ("retry", 1, "fail, attempt 1: retried, again in 5 s"),
        ("dead", 1, "fail, attempt 1: dead, stolen"),
        ("cancel", 1, "fail, attempt 1: cancelled"),
        ("snooze", 1, "fail, attempt 1: snoozed"),
    ],
)
def test_an_error_is_raised_and_says_what_becomes_of_the_job(
    how: str, attempt: int, said: str, disque_inline: Inline
) -> None:
    with pytest.raises(type(ERRORS[how])) as raised:
        disque_inline.blocking.perform(fail, how, attempt=attempt)

    assert raised.value.__notes__[-1].startswith(f"disque_inline: {said}")


def test_a_job_of_which_workers_have_died_is_not_run(disque_inline: Inline) -> None:
    with pytest.raises(JobDiedError, match="killed its worker 3 times while running alone"):
        disque_inline.blocking.perform(send, "ada", interrupted=5)

    assert seen == []


def test_a_time_limit_ends_a_run(disque_inline: Inline) -> None:
    slow.blocking.enqueue()

    [ran] = disque_inline.blocking.run_all(app, may_die=True)
    assert ran.end == "dead"
    assert "JobTimeoutError" in ran.reason


# Retries, snoozes, times.


def test_a_job_that_fails_is_run_again_when_its_policy_says(disque_inline: Inline) -> None:
    fail.blocking.enqueue("once")
    began = disque_inline.now

    first, second = disque_inline.blocking.run_all(app)

    assert (first.end, first.after, second.end, second.attempt) == ("retried", 10, "done", 2)
    assert disque_inline.now - began == pytest.approx(10, abs=1)


def test_a_job_that_dies_fails_the_test_unless_it_may(disque_inline: Inline) -> None:
    fail.blocking.enqueue("value")
    with pytest.raises(JobDiedError, match="failed 3 of 3 times"):
        disque_inline.blocking.run_all(app)

    fail.blocking.enqueue("dead")
    [ran] = disque_inline.blocking.run_all(app, may_die=True)
    assert (ran.end, ran.reason) == ("dead", "stolen")
    assert [job.reason[:6] for job in disque_inline.dead()] == ["failed", "stolen"]


def test_a_snooze_counts_as_no_attempt(disque_inline: Inline) -> None:
    fail.blocking.enqueue("snooze")

    ran = disque_inline.blocking.run_all(app)

    assert [(each.end, each.attempt) for each in ran] == [("snoozed", 1)] * 2 + [("done", 1)]


def test_jobs_that_never_end_end_the_test(disque_inline: Inline) -> None:
    endless = App()

    @endless.task(name="again")
    async def again() -> None:
        await again.enqueue()

    again.blocking.enqueue()
    with pytest.raises(EndlessError, match="more than 1000 runs; the last ones: again, attempt 1"):
        disque_inline.blocking.run_all(endless)


def limited(jobs: int, **limits: Any) -> App[None]:
    """So many jobs of a queue with these limits are queued. They note their numbers."""
    numbers = App[None]()
    number = numbers.task(name="number", queue="limited")(seen.append)
    numbers.limit("limited", **limits)
    for each in range(jobs):
        number.blocking.enqueue(each)
    return numbers


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        ({"rate": (20, 1)}, 1.5),
        ({"rate": (5, 1), "burst": 10}, 6),  # a new keeper has no tokens left over
        ({"rate": (1, 3600)}, 29 * 3600),
        ({"rate": (20, 1), "concurrency": 2}, 1.5),
        ({"concurrency": 1}, 0),
    ],
)
def test_jobs_that_wait_for_the_rate_of_their_queue_are_run_when_it_allows_them(
    disque_inline: Inline, limits: dict[str, Any], seconds: float
) -> None:
    numbers = limited(30, **limits)
    began = disque_inline.now

    disque_inline.blocking.run_all(numbers)

    assert seen == list(range(30))
    assert disque_inline.now - began == pytest.approx(seconds, rel=0.2, abs=0.2)


def test_of_jobs_within_a_rate_those_that_it_allows_in_that_time_are_run(
    disque_inline: Inline,
) -> None:
    numbers = limited(5, rate=(1, 10))

    at_once = disque_inline.blocking.run_for(numbers, 0)
    later = disque_inline.blocking.run_for(numbers, 25)

    assert len(at_once) in (1, 2), "a token, and the one of the next moments"
    assert len(later) == 2


def test_a_paused_queue_and_one_of_another_app_are_not_awaited_within_their_rates(
    disque_inline: Inline,
) -> None:
    numbers = limited(9, rate=(1, 10))

    disque_inline.blocking.run_for(numbers, 0)  # sets the limits
    began = disque_inline.now
    assert disque_inline.blocking.run_all(app) == []
    disque_inline.node.ask((b"PAUSE", b"limited", b"out"))
    assert disque_inline.blocking.run_all(numbers) == []
    assert disque_inline.now == began
    disque_inline.node.ask((b"PAUSE", b"limited", b"none"))
    disque_inline.blocking.run_all(numbers)
    assert seen == list(range(9))


def test_only_what_is_due_in_that_time_is_run(disque_inline: Inline) -> None:
    send.using(delay=30).blocking.enqueue("ada")
    send.using(delay=90).blocking.enqueue("bob")

    assert disque_inline.blocking.run_for(app, 0) == []
    assert len(disque_inline.blocking.run_for(app, 60)) == 1
    assert [job.due_in for job in disque_inline.jobs()] == [pytest.approx(30, abs=0.1)]
    disque_inline.sleep(30)
    assert len(disque_inline.blocking.run_for(app, 0)) == 1


def test_ticks_of_cron_come_as_time_passes(disque_inline: Inline) -> None:
    daily, instants = App(), list[datetime]()

    @daily.cron("30 2 * * *", tz="Europe/Berlin")
    @daily.task(name="report")
    async def report(*, scheduled: datetime) -> None:
        instants.append(scheduled)

    assert disque_inline.blocking.run_all(daily) == []
    disque_inline.blocking.run_for(daily, 3 * 24 * 3600)

    assert len(instants) == 3
    assert {each.minute for each in instants} == {30}


def test_ticks_of_schedules_come_as_time_passes(disque_inline: Inline) -> None:
    shop, instants = App(), list[datetime]()

    @shop.task(name="report")
    async def report(*, scheduled: datetime) -> None:
        instants.append(scheduled)
        if len(instants) == 5:
            await shop.schedules.pause("often")

    schedules = shop.blocking.schedules
    schedules.add("often", report, every=5)
    schedules.add("paused", report, every=1)
    schedules.pause("paused")
    assert disque_inline.blocking.run_all(shop) == []

    ran = disque_inline.blocking.run_for(shop, 60)

    begin = instants[0]
    assert [(each - begin).total_seconds() for each in instants] == [0, 5, 10, 15, 20]
    assert len(ran) == 5
    assert disque_inline.blocking.run_for(App(), 60) == []


def test_a_long_reply_is_whole(disque_inline: Inline) -> None:
    schedules = app.blocking.schedules
    for number in range(300):
        schedules.add(f"{number}", send.call("ada"), every=60)

    assert len(schedules.list()) == 300
    assert len(disque_inline.blocking.run_for(app, 60)) == 300


# Chains, batches, results.


@Kinds
def test_the_steps_of_a_chain_follow_and_its_result_is_the_last(
    kind: str, disque_inline: Inline
) -> None:
    async def story() -> None:
        chain = await (ship.call(Order(1)) | send.call("ada", "done")).enqueue()
        with pytest.raises(InlineError, match="let `disque_inline` run the job first"):
            await chain.result()
        ran = await disque_inline.run_all(app)
        assert [each.task for each in ran] == ["ship", "mail.send"]
        assert await chain.result() == 4

    run(kind, story)


def test_a_result_is_what_arrives_where_it_is_waited_for(disque_inline: Inline) -> None:
    own = App()

    @own.task(name="keys", queue="q", result_ttl=60)
    def keys() -> Any:
        return {1: b"x"}

    @own.task(name="wrong", queue="q", result_ttl=60)
    def wrong() -> int:
        return "text"  # type: ignore[return-value]

    @own.task(name="thing", queue="q", result_ttl=60)
    def thing() -> object:
        return object()

    for task in (keys, wrong, thing):
        task.blocking.enqueue()
    arrived, *others = disque_inline.blocking.run_all(own)

    assert (arrived.result, arrived.error) == ({"1": "eA=="}, None)
    assert [(each.end, each.result) for each in others] == [("done", None)] * 2
    assert "its result has another type: Expected `int`, got `str`" in str(others[0].error)
    assert "a value of type object cannot be encoded" in str(others[1].error)
    assert all(isinstance(each.error, JobFailedError) for each in others)


def test_what_follows_a_batch_is_run_when_all_are_done(
    disque_inline: Inline, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        calls = [ship.call(Order(n)) for n in range(3)]
        await app.batch(calls, then=send.call("ada", "all"))
        await disque_inline.run_all(app)

    run("trio", story)
    assert seen == [*((Order(n), False) for n in range(3)), ("ada", "all", 1)]
    assert caplog.messages == []


def test_a_request_that_waits_is_answered_when_its_time_is_over(disque_inline: Inline) -> None:
    client, before = app.blocking.client, disque_inline.now

    assert client.getjob("empty", timeout=2) == []
    assert disque_inline.now - before == pytest.approx(2)


def test_a_long_wait_gets_a_job_that_is_due_late(disque_inline: Inline) -> None:
    client, before = app.blocking.client, disque_inline.now
    client.addjob("later", "body", delay=60, replicate=1)

    [job] = client.getjob("later", timeout=120)

    assert job.body == b"body"
    assert disque_inline.now - before == pytest.approx(60, abs=2)


def test_a_consumer_gets_the_bytes(disque_inline: Inline) -> None:
    raw, bodies = App(), list[bytes]()

    @raw.consumer("raw")
    async def take(body: bytes) -> None:
        bodies.append(body)

    raw.blocking.client.addjob("raw", b"\x00\x01")
    assert disque_inline.jobs()[0].body == b"\x00\x01"
    disque_inline.blocking.run_all(raw)

    assert bodies == [b"\x00\x01"]


@pytest.mark.parametrize("of", ["task", "consumer"])
def test_a_snoozed_job_keeps_its_id_and_its_snoozes_are_counted(
    of: str, disque_inline: Inline
) -> None:
    snoozing, found = App(), []

    async def three_times(_: bytes = b"") -> None:
        job = current_job()
        found.append((job.id, job.attempt, job.snoozes))
        if job.snoozes < 3:
            raise Snooze(60, most=3)

    if of == "task":
        snoozing.task(name="t", queue="snoozing")(three_times)
    else:
        snoozing.consumer("snoozing")(three_times)
    client = snoozing.blocking.client
    id = client.addjob("snoozing", b'{"task":"t"}')

    disque_inline.blocking.run_all(snoozing)
    assert found == [(id, 1, count) for count in range(4)]
