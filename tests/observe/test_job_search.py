"""Jobs of a cluster by filters, groups of dead ones, and operations for all that fit."""

import time
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
import trio

from disque_trio.client import commands
from disque_trio.observe import bulk, scanning
from disque_trio.observe.job_search import last_error
from disque_trio.observe.operations import OPERATIONS
from disque_trio.worker.codec import write
from disque_trio.worker.operating.asking import Found
from disque_trio.worker.operating.notes import WORKERS, Note
from disque_trio.worker.operating.plans import MistakeError, Outcome
from disque_trio.worker.reporting import RunningJob
from tests.observe.rig import Observed, observed
from tests.observe.test_topics import REPORT, told

WHY = "failed 3 of 3 times: TimeoutError: no answer of {} (app/mail.py:22 in send)"


async def listed(seen: Observed, **args: Any) -> dict[str, dict[str, Any]]:
    """By state of each job that fits: its row."""
    return {row["state"]: row for row in (await told(seen, "jobs", **args))["jobs"]}


async def in_every_state(seen: Observed) -> dict[str, str]:
    """A job in each state, by state."""
    client, ids = seen.client, {}
    for state in ("dead", "backing-off", "running"):
        ids[state] = await client.addjob("mail", f"body {state}", replicate=1, retry=500)
        [job] = await client.getjob("mail")
        if state == "dead":
            await client.run(commands.nack(job, dead=WHY.format(7)))
        elif state == "backing-off":
            await client.run(commands.nack(job, delay=300))
    report = attrs.evolve(
        REPORT,
        jobs=[RunningJob(id=ids["running"], task="send", queue="mail", age_s=12, lease_s=40)],
    )
    note = write(Note(control="disque-trio.control.mailer.1", report=report), "json")
    await client.addjob(WORKERS, note, replicate=1, retry=0, ttl=30)
    ids["delayed"] = await client.addjob("mail", "body delayed", replicate=1, delay=60)
    ids["queued"] = await client.addjob("mail", "body queued", replicate=1)
    await seen.observer.counts.once()
    return ids


async def test_jobs_in_every_state_are_listed_once(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    ids = await in_every_state(seen)

    rows = await listed(seen)

    assert {state: row["id"] for state, row in rows.items()} == ids
    assert rows["running"]["worker"] == "mailer"
    assert 12 <= rows["running"]["since_s"] < 22
    assert (rows["backing-off"]["attempt"], rows["queued"]["attempt"]) == (2, 1)
    assert rows["dead"]["attempt"] == 1, "of a dead job it is the last one that has been"
    assert rows["queued"]["due_s"] is None, "it is queued now"
    assert 290 < rows["backing-off"]["due_s"] <= 300
    assert rows["dead"]["error"]["kind"] == "TimeoutError"
    assert rows["dead"]["error"]["place"] == "app/mail.py:22 in send"


async def test_a_failed_attempt_has_its_error(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    await seen.client.addjob("mail", "body", replicate=1)
    [job] = await seen.client.getjob("mail")
    said = "TimeoutError: no answer\napp/mail.py:22 in send\nTraceback …"
    await seen.client.run(commands.nack(job, delay=300, error=said))
    await seen.observer.counts.once()

    error = (await listed(seen, error="timeout"))["backing-off"]["error"]

    assert (error["kind"], error["message"]) == ("TimeoutError", "no answer")
    assert (error["place"], error["traceback"]) == ("app/mail.py:22 in send", "Traceback …")
    assert abs(error["at_ms"] - time.time() * 1000) < 60_000


@pytest.mark.parametrize("begin", ["", "failed 1 of 1 time: ", "failed 1,000 times: "])
def test_only_the_begin_of_a_reason_counts_attempts(begin: str) -> None:
    reason = f"{begin}OSError: the upload failed 3 times: no answer"
    copy: Any = SimpleNamespace(job=SimpleNamespace(error=None, state="dead"), reason=reason)

    error = last_error(copy)

    assert error is not None
    assert (error.kind, error.message) == ("OSError", "the upload failed 3 times: no answer")


@pytest.mark.parametrize("state", ["running", ""])
async def test_a_job_that_a_plain_client_has_is_running(nursery: trio.Nursery, state: str) -> None:
    seen = await observed(nursery, 2)
    id = await seen.client.addjob("mail", "body", replicate=2, retry=500)
    await seen.client.getjob("mail")
    await seen.observer.counts.once()

    rows = await listed(seen, state=state)

    assert (rows["running"]["id"], len(rows)) == (id, 1)


@pytest.mark.parametrize("state", ["dead", "backing-off", "running", "delayed", "queued"])
async def test_a_state_is_a_filter(nursery: trio.Nursery, state: str) -> None:
    seen = await observed(nursery)
    ids = await in_every_state(seen)

    rows = (await told(seen, "jobs", state=state))["jobs"]

    assert [row["id"] for row in rows] == [ids[state]]


@pytest.mark.parametrize(
    ("filters", "states"),
    [
        ({"queue": "mail", "text": "body d"}, {"dead", "delayed"}),
        ({"state": "dead", "text": "body q"}, set()),
        ({"worker": "MAIL"}, {"running"}),
        ({"error": "timeouterror: no answer"}, {"dead"}),
        ({"place": "app/mail.py:22 in send"}, {"dead"}),
        ({"older": 3600}, set()),
        ({"queue": "sms"}, set()),
        ({"task": "send"}, set()),
        ({"key": "k"}, set()),
    ],
)
async def test_filters_combine(
    nursery: trio.Nursery, filters: dict[str, Any], states: set[str]
) -> None:
    seen = await observed(nursery)
    await in_every_state(seen)

    assert set(await listed(seen, **filters)) == states


async def test_tasks_and_keys_are_found_in_replicas_of_several_nodes(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 2)
    body = b'{"task": "shop.send", "args": [1]}'
    id = await seen.client.addjob("mail", body, replicate=2, unique="customer 7")
    await seen.client.addjob("mail", "another", replicate=2)
    await seen.observer.counts.once()

    rows = (await told(seen, "jobs", task="SEND", key="customer"))["jobs"]

    assert [(row["id"], row["task"], row["key"]) for row in rows] == [
        (id, "shop.send", "customer 7")
    ]


async def test_what_is_left_out_is_said(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    adds = [commands.addjob("mail", f"{n}", replicate=1) for n in range(101)]
    await seen.client.run_all(adds)

    first, more = await told(seen, "jobs"), await told(seen, "jobs", most=1000)

    assert (len(first["jobs"]), first["is_cut"]) == (100, True)
    assert (len(more["jobs"]), more["is_cut"]) == (101, False)


async def test_a_look_that_ran_out_of_time_says_so_and_gets_more_time_when_it_is_repeated(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = await observed(nursery)
    adds = [commands.addjob(f"q{n % 2}", f"{n}", replicate=1) for n in range(3000)]
    await seen.client.run_all(adds)
    with monkeypatch.context() as patched:
        patched.setattr(scanning, "SECONDS", -1.0)
        cut = await told(seen, "jobs", text="none has this")
        whole = await told(seen, "jobs", text="none has this")

    assert (cut["jobs"], cut["is_cut"]) == ([], True)
    assert (whole["jobs"], whole["is_cut"]) == ([], False)


async def test_jobs_that_have_ended_are_listed_if_they_are_asked_for(
    nursery: trio.Nursery,
) -> None:
    seen = await observed(nursery, 2)
    client = seen.client
    args = "x" * 80
    ids = [
        await client.addjob("mail", f'{{"task": "shop.send", "args": ["{n}{args}"]}}', replicate=2)
        for n in range(2)
    ]
    [first, second] = await client.getjob("mail", count=2)
    await client.run(commands.call("CLIENT", "SETNAME", "mailer"))
    await client.nack(first, error="ValueError: no\napp.py:3")
    await client.ackjob(first)
    await client.ackjob(second)
    await client.addjob("mail", "queued", replicate=1)
    await seen.observer.counts.once()

    rows = (await told(seen, "jobs", state="ended"))["jobs"]
    found = (await told(seen, "jobs", state="ended", task="send", error="valueerror"))["jobs"]
    page = await told(seen, "job", id=ids[0])

    assert [row["id"] for row in rows] == ids[::-1]
    assert {(row["state"], row["outcome"], row["task"]) for row in rows} == {
        ("ended", "acknowledged", "shop.send")
    }
    assert all(row["worker"] and row["due_s"] is None for row in rows)
    assert abs(rows[0]["ended_ms"] - time.time() * 1000) < 60_000
    assert [row["id"] for row in found] == [first.id]
    assert "ended" not in await listed(seen)
    assert (page["found"], page["summary"]["outcome"]) == (False, "acknowledged")
    assert page["summary"]["error"]["kind"] == "ValueError"
    assert page["facts"]["task"] == "shop.send"


@pytest.mark.parametrize(
    "args", [{"state": "lost"}, {"older": -1}, {"older": "1"}, {"most": 1001}, {"task": 7}]
)
async def test_filters_that_cannot_be_are_refused(
    nursery: trio.Nursery, args: dict[str, Any]
) -> None:
    seen = await observed(nursery)

    with pytest.raises(MistakeError, match=r"state|number|text"):
        await told(seen, "jobs", **args)


async def test_dead_jobs_of_one_error_are_a_group_whatever_its_words(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    for n in range(4):
        await seen.client.addjob("mail", f"{n}", replicate=1)
        [job] = await seen.client.getjob("mail")
        why = WHY.format(n) if n < 3 else "no such user"
        await seen.client.run(commands.nack(job, dead=why))
    await seen.observer.counts.once()

    groups = (await told(seen, "dead"))["groups"]

    assert [(each["error"], each["place"], each["count"]) for each in groups] == [
        ("TimeoutError", "app/mail.py:22 in send", 3),
        ("no such user", "", 1),
    ]
    assert groups[0]["messages"] == 3
    assert groups[0]["first_ms"] <= groups[0]["last_ms"]


async def test_an_operation_is_for_all_jobs_that_fit(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    ids = await in_every_state(seen)
    await seen.client.addjob("mail", "second", replicate=1)
    fitting = await seen.observer.ids({"queue": "mail"})

    plan = await bulk.planned(OPERATIONS["jobs requeue"], seen.client, fitting, {})
    outcome = Outcome()
    await plan.run(outcome, lambda _: None)

    assert len(fitting.items) == 6
    assert plan.says[0] == "Requeue: 3 jobs"
    assert any("2 × the job is already queued" in each for each in plan.says)
    assert (outcome.count, outcome.says) == (3, ["3 jobs enqueued"])
    states = await listed(seen)
    assert set(states) == {"queued", "dead"}
    assert states["dead"]["id"] == ids["dead"]


async def test_an_operation_on_many_jobs_asks_for_their_number(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    added = [await seen.client.addjob("mail", f"{n}", replicate=1) for n in range(101)]
    ids = Found(added, {})

    plan = await bulk.planned(OPERATIONS["jobs acknowledge"], seen.client, ids, {})

    assert plan.confirm == "101"
    with pytest.raises(MistakeError, match="is not an operation on a job"):
        await bulk.planned(OPERATIONS["queues purge"], seen.client, ids, {})
    with pytest.raises(MistakeError, match="no job matches the filter"):
        await bulk.planned(OPERATIONS["jobs acknowledge"], seen.client, Found[str]([], {}), {})


async def test_an_attempt_is_one_of_those_of_the_task_where_the_job_has_no_limit(
    nursery: trio.Nursery,
) -> None:
    seen = await observed(nursery)
    note = Note(control="c", report=REPORT, attempts={"mail.send": 25})
    await seen.client.addjob(WORKERS, write(note, "json"), replicate=1, retry=0, ttl=30)
    body = b'{"task": "mail.send"}'
    plain = await seen.client.addjob("mail", body, replicate=1, retry=60)
    limited = await seen.client.addjob("mail", body, replicate=1, retry=60, limit=3)
    other = await seen.client.addjob("mail", b'{"task": "x"}', replicate=1, retry=60)

    rows = {each["id"]: each for each in (await told(seen, "jobs"))["jobs"]}
    one = (await told(seen, "job", id=plain))["summary"]

    assert [rows[id]["limit"] for id in (plain, limited, other)] == [25, 3, None]
    assert (one["attempt"], one["limit"]) == (1, 25)
