"""Operations that add jobs: to a queue, and in place of another one."""

import pytest
import trio

from disque_trio.client import commands
from disque_trio.client.errors import DisqueError
from disque_trio.client.records import JobDetails
from disque_trio.observe.operations import OPERATIONS, fields_of
from disque_trio.worker.operating.admin import Admin
from disque_trio.worker.operating.plans import Json, MistakeError, Outcome, Plan
from tests.observe.rig import Observed, observed


async def planned(seen: Observed, key: str, **args: object) -> Plan:
    return await OPERATIONS[key].planned(seen.client, fields_of(args))


async def done(plan: Plan) -> Outcome:
    outcome = Outcome()
    await plan.run(outcome, lambda _: None)
    return outcome


async def shown(seen: Observed, id: str) -> JobDetails:
    job = await seen.client.run(commands.show(id))
    assert job is not None
    return job


async def test_a_job_is_added_with_the_options_of_addjob(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    options = {"priority": -5, "retry": 60, "limit": 3, "unique": "k", "backoff": 1.5}

    plan = await planned(seen, "queues add", queue="mail", body="to: eve", **options)
    before = await seen.client.qlen("mail")
    outcome = await done(plan)

    assert plan.says == [
        'a job with a body of 7 bytes is added to queue "mail"',
        'options: RETRY 60, PRIORITY -5, LIMIT 3, UNIQUE "k", BACKOFF 1.500',
        "no client waits for jobs of this queue now",
    ]
    assert (before, await seen.client.qlen("mail")) == (0, 1)
    id = outcome.details[0]["id"]
    assert outcome.says == [f"added {id}; if the key was in use, {id} is the job that has it"]
    job = await shown(seen, id)
    assert (job.body, job.retry, job.more["priority"]) == (b"to: eve", 60, -5)
    assert (job.more["limit"], job.more["key"], job.more["backoff"]) == (3, b"k", 1500)


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({}, "'queue' is missing"),
        ({"queue": "q"}, "'body' is missing"),
        ({"queue": "q", "body": "b", "retry": 0, "limit": 1}, "LIMIT needs a RETRY above 0"),
        ({"queue": "q", "body": "b", "keep": 1}, "KEEP needs UNIQUE"),
        ({"queue": "q", "body": "b", "priority": 101}, "'priority' is not a number from -100 to"),
        ({"queue": "q", "body": "b", "ttl": 1.5}, "'ttl' is not a number from 1 to"),
        ({"queue": "q", "body": "b", "sync": "many"}, "sync 'many' is neither a number of nodes"),
        ({"queue": "q", "body": "b", "is_async": 1}, "'is_async' is neither true nor false"),
        ({"queue": "q", "body": "b", "if_exists": "x"}, "if_exists 'x' is not one of return"),
    ],
)
async def test_what_addjob_would_refuse_is_refused_before_it_is_asked(
    nursery: trio.Nursery, args: Json, why: str
) -> None:
    seen = await observed(nursery)

    with pytest.raises(MistakeError, match=why):
        await planned(seen, "queues add", **args)


async def test_a_program_adds_a_job_with_any_bytes(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)

    await Admin(seen.client).queues.add("mail", b"\xff\x00", sync="auto", is_async=False)
    await Admin(seen.client).queues.add("mail", "")

    jobs = await seen.client.getjob("mail", count=2)
    assert [job.body for job in jobs] == [b"\xff\x00", b""]


async def test_a_paused_queue_is_told_before_a_job_is_added(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    await seen.client.run(commands.pause("mail", "in"))
    name = seen.nodes[0].state.cluster.myself.id.decode()[:8]

    plan = await planned(seen, "queues add", queue="mail", body="b")

    assert plan.says[-1] == f"the input of the queue is paused at {name}: jobs are refused"
    with pytest.raises(DisqueError, match="PAUSED"):
        await done(plan)


async def test_a_dead_job_is_replaced_by_one_with_another_body(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 2)
    old = await seen.client.addjob("mail", "to: ev", replicate=2, retry=60, limit=3, backoff=2)
    [job] = await seen.client.getjob("mail")
    await seen.client.run(commands.nack(job, dead="no such user"))

    outcome = await done(await planned(seen, "jobs edit", id=old, body="to: eve"))

    added, ended = outcome.says
    new = await shown(seen, added.removeprefix("added "))
    assert (ended, new.id != old) == (f"acknowledged {old}", True)
    assert (new.body, new.state, new.nacks, new.repl) == (b"to: eve", "queued", 0, 2)
    assert (new.retry, new.more["limit"], new.more["backoff"]) == (60, 3, 2000)
    left = await seen.client.run(commands.show(old))
    assert left is None or left.state == "acked"


async def test_a_job_that_replaces_another_one_has_its_key(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 2)
    old = await seen.client.addjob("mail", "a", replicate=2, retry=60, unique="k", keep=90)

    plan = await planned(seen, "jobs edit", id=old, body="b")
    outcome = await done(plan)

    assert "CANCEL KEY cancels the old job, and frees the key for the new one" in plan.says
    new = outcome.says[-1].removeprefix("added ")
    assert await seen.client.addjob("mail", "c", replicate=2, retry=60, unique="k") == new
    jobs = await seen.client.getjob("mail", count=9)
    assert [(job.id, job.body) for job in jobs] == [(new, b"b")]
    assert (await shown(seen, new)).more["keep"] == 90_000
    [scanned] = (await seen.client.run(commands.jscan(0, states=("active", "queued")))).items
    assert scanned.id == new  # nothing is left that would be enqueued later


async def test_a_delayed_job_is_replaced_by_one_that_waits_for_the_rest(
    nursery: trio.Nursery,
) -> None:
    seen = await observed(nursery)
    old = await seen.client.addjob("mail", "a", replicate=1, retry=60, delay=600)

    outcome = await done(await planned(seen, "jobs edit", id=old, body="b"))

    new = await shown(seen, outcome.says[0].removeprefix("added "))
    assert new.state == "active"
    assert 590 <= new.delay <= 600


async def test_a_job_that_a_worker_has_is_not_replaced(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    id = await seen.client.addjob("mail", "a", replicate=1, retry=60)
    await seen.client.getjob("mail")

    with pytest.raises(MistakeError, match="a worker has"):
        await planned(seen, "jobs edit", id=id, body="b")
