"""An operation names each node at which it does not take effect, because that does not answer."""

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
import trio

from disque_trio.client import commands
from disque_trio.observe import bulk
from disque_trio.observe.client import Silence
from disque_trio.observe.operations import OPERATIONS, fields_of
from disque_trio.observe.operations.operation import each_once
from disque_trio.worker import App
from disque_trio.worker.codec import write
from disque_trio.worker.flows import asking
from disque_trio.worker.flows.handles import FlowMemberStatus, FlowStatus
from disque_trio.worker.operating.asking import Found
from disque_trio.worker.operating.jobs import Jobs
from disque_trio.worker.operating.notes import WORKERS, Note
from disque_trio.worker.operating.plans import MistakeError, Outcome, Plan, SilentNodeError
from tests.observe.arguments import needed
from tests.observe.rig import Observed, observed
from tests.observe.test_topics import REPORT

ONE_IS_ENOUGH = {
    "queues add", "jobs requeue", "jobs nack", "jobs redrive", "schedules add", "schedules pause",
    "schedules resume", "schedules run", "schedules remove", "nodes leave", "nodes stay",
    "nodes kick", "nodes meet",
}  # fmt: skip
"""One node carries these out, and the others need not know, or will."""


@attrs.frozen
class Place:
    """Three nodes. The second does not answer, and may have each of the jobs."""

    seen: Observed
    alive: str
    dead: str
    flow: str

    async def planned(self, name: str, /, **more: object) -> Plan:
        operation = OPERATIONS[name]
        args = {**needed(operation), **HERE, **more}
        taken = {each.name for each in operation.arguments}
        args = {name: value for name, value in args.items() if name in taken}
        return await operation.planned(self.seen.client, fields_of(args))

    def of(self, key: str) -> dict[str, object]:
        """What this operation is for."""
        ids = {"jobs redrive": self.dead, "jobs drop": self.dead, "flows cancel": self.flow}
        return {"id": {**ids, "flows retry": self.flow}.get(key, self.alive)}


HERE: Mapping[str, object] = {
    "queue": "mail", "worker": "mailer", "name": "nightly", "task": "t",
}  # fmt: skip
"""What there is, for arguments that name something."""


async def placed(nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> Place:
    seen = await observed(nursery, 3)
    client = seen.client
    await client.run(commands.limit_queue("mail", rate=1000))
    dead = await client.addjob("mail", "x", replicate=3)
    [job] = await client.getjob("mail")
    await client.run(commands.nack(job, dead="no such user"))
    alive = await client.addjob("mail", "x", replicate=3, delay=600)
    note = write(Note(control="disque-trio.control.mailer.1", report=REPORT), "json")
    await client.addjob(WORKERS, note, replicate=1, retry=0, ttl=30)
    app = App[None](f"disque://{client.nodes.seeds[0]}")
    app.task(name="t")(_task)
    async with app:
        await app.admin.schedules.add(name="nightly", task="t", every=60)
        flow = app.flow()
        flow.add(app.tasks["t"].call())
        found = await flow.enqueue()
    members = [FlowMemberStatus(place=0, task="t", state="dead", id=dead)]

    async def status(*_: object) -> FlowStatus:
        await trio.lowlevel.checkpoint()
        return FlowStatus(id=found.id, state="failed", members=members)

    monkeypatch.setattr(asking, "status", status)
    silent = f"127.0.0.1:{seen.nodes[1].state.config.port}"
    client.silent[silent] = Silence(trio.current_time(), "no answer")
    return Place(seen, alive, dead, found.id)


async def _task() -> None: ...


async def test_each_operation_names_the_node_that_it_leaves_out(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = await placed(nursery, monkeypatch)
    first, silent, third = (node.state.cluster.myself.id.decode() for node in place.seen.nodes)

    for key in OPERATIONS:
        node = third if key == "nodes forget" else first
        if key == "jobs nack":
            with pytest.raises(MistakeError, match="no worker has it"):
                await place.planned(key, id=place.dead)
        plan = await place.planned(key, **place.of(key), node=node)

        lines = [line for line in plan.unasked if line.startswith(f"{silent[:8]} is left out: ")]
        assert len(lines) == (key not in ONE_IS_ENOUGH), (key, plan.unasked)
        assert set(plan.unasked) <= set(plan.says), key


async def test_what_one_node_does_to_a_job_says_who_else_may_have_it(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = await placed(nursery, monkeypatch)

    for key in ("jobs requeue", "jobs nack", "jobs redrive"):
        plan = await place.planned(key, **place.of(key))
        assert "may also have it, but does not answer: no answer" in plan.says[-1], key
    plan = await place.planned("jobs acknowledge", id=place.alive)
    assert "never delivered" not in plan.says[0]
    plan = await place.planned("queues add", queue="new")
    assert plan.says[-1].endswith(" did not answer")


@pytest.mark.parametrize(
    ("key", "args", "why"),
    [
        ("jobs acknowledge", {"id": "D-5a1f30c2-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"}, "it has ended"),
        ("flows cancel", {"id": "D-5a1f30c2-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"}, "it has ended"),
        ("workers stop", {"worker": "nobody"}, "there are mailer"),
        ("queues drop", {"queue": "empty"}, "has no dead job"),
    ],
)
async def test_what_is_not_found_may_be_at_the_node_that_does_not_answer(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, key: str, args: Any, why: str
) -> None:
    place = await placed(nursery, monkeypatch)
    silent = place.seen.nodes[1].state.cluster.myself.id.decode()[:8]

    with pytest.raises(SilentNodeError) as caught:
        await place.planned(key, **args)

    assert why in str(caught.value)
    assert str(caught.value).endswith(f"; {silent} may know more, but does not answer")


async def test_a_key_that_is_not_found_may_be_at_the_node_that_does_not_answer(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = await placed(nursery, monkeypatch)
    plan, outcome = await place.planned("queues cancel", key="gone"), Outcome()

    await plan.run(outcome, lambda _: None)

    [line] = outcome.failed
    assert line.startswith("no job has this key; ")


async def test_jobs_that_fit_a_filter_and_are_left_out_are_reported(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = await placed(nursery, monkeypatch)
    observer = place.seen.observer

    found = await observer.ids({"queue": "mail"})
    plan = await bulk.planned(OPERATIONS["jobs acknowledge"], place.seen.client, found, {})

    assert set(found.unreached) == set(place.seen.client.silent)
    [line] = plan.unasked
    assert plan.says.count(line) == 1
    assert "more matching jobs" not in "".join(plan.says)
    some = Found(found.items, {}, is_cut=True)
    plan = await bulk.planned(OPERATIONS["jobs acknowledge"], place.seen.client, some, {})
    assert "there may be more matching jobs: repeat the operation for them" in plan.says


def test_a_node_is_named_once_however_long_it_has_been_silent() -> None:
    lines = [f"n2 is left out: no answer for {seconds} s" for seconds in (9, 10)]

    assert each_once([*lines, "n3 knows no limits"]) == [lines[1], "n3 knows no limits"]


async def test_dead_jobs_with_a_reason_are_found_beyond_the_limit(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    for number in range(150):
        await seen.client.addjob("mail", "x", replicate=1)
        [job] = await seen.client.getjob("mail")
        await seen.client.run(commands.nack(job, dead="rare" if number == 149 else "usual"))

    found = await Jobs(seen.client).dead("mail", reason="rare", limit=10)
    some = await Jobs(seen.client).dead("mail", limit=10)
    listed = await Jobs(seen.client).listed("mail", states=["dead"], limit=1000)

    assert ([each.reason for each in found.items], found.is_cut) == (["rare"], False)
    assert (len(some.items), some.is_cut) == (10, True)
    assert (len(listed.items), listed.is_cut) == (150, False)


async def test_jobs_in_a_state_are_found_behind_those_in_others(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    for _ in range(150):
        await seen.client.addjob("mail", "x", replicate=1)
    late = await seen.client.addjob("mail", "x", replicate=1, delay=600)

    found = await Jobs(seen.client).listed("mail", states=["delayed"], limit=10)

    assert ([each.id for each in found.items], found.is_cut) == ([late], False)
