"""Limits of queues: how they are shown, set and removed."""

import pytest
import trio

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.records import Job, QueueInfo, QueueLimits
from disque_trio.observe.client import Silence
from disque_trio.observe.operations import OPERATIONS, limits
from disque_trio.worker.operating import queues as operating
from disque_trio.worker.operating.admin import Admin
from disque_trio.worker.operating.asking import Found, unwrap
from disque_trio.worker.operating.plans import Json, MistakeError, Outcome, Plan
from tests.observe.rig import Observed, observed


async def planned(seen: Observed, operation: str, **args: object) -> Plan:
    return await OPERATIONS[f"queues {operation}"].planned(seen.client, {"queue": "mail", **args})


async def done(plan: Plan) -> Outcome:
    outcome = Outcome()
    await plan.run(outcome, lambda _: None)
    return outcome


def settings(seen: Observed) -> list[tuple[int, int, int, int]]:
    """Concurrency, rate, period and burst at each node."""
    found = [node.state.limits[b"mail"].setting for node in seen.nodes]
    return [(each.concurrency, each.rate, each.period, each.burst) for each in found]


async def _queued(seen: Observed, port: int) -> list[Job]:
    [jobs] = await seen.client.ask(Address(port=port), [commands.qpeek("mail", 1)])
    return unwrap(jobs)


async def shown(seen: Observed, name: str = "mail") -> Json | None:
    data, _ = await seen.observer.answer("queue", {"name": name})
    return data["queue"]  # type: ignore[no-any-return]


async def test_a_limit_that_is_set_once_is_known_at_all_nodes(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 3)

    outcome = await done(await planned(seen, "limit", rate=100, burst=7, concurrency=2))

    assert settings(seen) == [(2, 100, 1000, 7)] * 3
    assert outcome.says == ["the limits are set at 3 nodes"]
    assert (outcome.count, outcome.failed) == (1, [])
    epochs = {node.state.limits[b"mail"].setting.epoch for node in seen.nodes}
    assert len(epochs) == 1, "it was sent to one node"


async def test_a_plan_names_the_limits_that_end(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    await seen.client.limit_queue("mail", concurrency=3, rate=100, per=2.5, burst=20)
    for _ in range(3):
        await seen.client.addjob("mail", "x", replicate=1)
    with trio.fail_after(30):
        for _ in range(3):
            await seen.client.getjob("mail")

    plan = await planned(seen, "limit", concurrency=2)

    assert plan.says[:3] == [
        'queue "mail" has these limits in the whole cluster: 2 leased',
        "its current limits end: 3 leased, 100 per 2.5 s, burst 20",
        "3 jobs are leased: none is delivered until fewer than 2 are",
    ]
    assert settings(seen) == [(3, 100, 2500, 20)], "a plan changes nothing"
    await done(plan)
    assert settings(seen) == [(2, 0, 0, 0)]
    assert "it already has these limits" in (await planned(seen, "limit", concurrency=2)).says


async def test_loose_limits_say_what_that_means(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)

    plan = await planned(seen, "limit", concurrency=2, is_loose=True)
    await done(plan)

    assert plan.says[0].endswith(": 2 leased, loose")
    assert "in a partition, each side uses the whole limits" in plan.says
    assert seen.nodes[0].state.limits[b"mail"].setting.is_loose


async def test_limits_are_removed_and_can_be_removed_once(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 2)
    await Admin(seen.client).queues.limit("mail", concurrency=3)

    plan = await planned(seen, "unlimit")
    await done(plan)

    assert plan.says[0] == 'queue "mail" loses these limits: 3 leased'
    assert settings(seen) == [(0, 0, 0, 0)] * 2
    with pytest.raises(MistakeError, match='queue "mail" has no limits'):
        await planned(seen, "unlimit")


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({}, "give concurrency or rate, of the queue or of its groups; queues unlimit removes"),
        ({"group_burst": 3, "rate": 1}, "group_burst needs group_rate"),
        ({"burst": 3, "concurrency": 1}, "burst needs rate"),
        ({"per": 3, "concurrency": 1}, "per needs rate"),
        ({"concurrency": 0}, "'concurrency' is not a number from 1 to"),
        ({"rate": 1, "per": 0.0001}, "'per' is not a number from 0.001 to"),
    ],
)
async def test_limits_that_cannot_be_are_refused(
    nursery: trio.Nursery, args: dict[str, object], why: str
) -> None:
    seen = await observed(nursery)

    with pytest.raises(MistakeError, match=why):
        await planned(seen, "limit", **args)


async def test_a_node_that_does_not_know_limits_is_named_and_not_asked_to_set_them(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operating, "_FEATURE", "what no node has")
    seen = await observed(nursery, 2, renamed=(("QUEUE", ""),))
    stranger = str(seen.nodes[1].state.config.port)

    plan = await planned(seen, "limit", concurrency=2)
    outcome = await done(plan)

    [line] = [each for each in plan.says if "does not support limits" in each]
    id = seen.nodes[1].state.cluster.myself.id.decode()
    assert line.startswith((id[:8], f"127.0.0.1:{stranger}"))
    assert outcome.says[0] == "the limits are set at 1 node"
    assert settings(seen)[0] == (2, 0, 0, 0)


async def test_a_node_that_others_report_to_know_no_limits_is_named(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = await observed(nursery)
    id = "8f050a832e42a19e028a84fe03abdc87b1ab05ad"
    told = QueueInfo(name="mail", limits=QueueLimits(1), unlimited_nodes=(id,))

    async def limits_of(_self: operating.Queues, _name: str) -> Found[object]:
        return Found([(Address(), told)], {})

    monkeypatch.setattr(operating.Queues, "limits", limits_of)

    plan = await planned(seen, "limit", concurrency=2)

    assert "8f050a83 does not support limits, and delivers without them" in plan.says


async def test_a_node_that_learns_late_is_named(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "KNOWN_S", 0.2)
    seen = await observed(nursery, 2)
    with monkeypatch.context() as away:
        away.setattr("disque_trio.statemachine.limiting.send.broadcast", lambda *_: None)
        away.setattr("disque_trio.statemachine.limiting.compare", lambda *_: None)
        outcome = await done(await planned(seen, "limit", concurrency=2))

    assert outcome.says[0] == "the limits are set at 1 node"
    assert outcome.says[1].endswith("has not applied the change yet")


async def test_a_silent_node_is_named_with_what_it_misses(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 2)
    silent = f"127.0.0.1:{seen.nodes[1].state.config.port}"
    seen.client.silent[silent] = Silence(trio.current_time(), "no answer")

    plan = await planned(seen, "limit", concurrency=2)

    [line] = plan.unasked
    assert "is left out" in line
    assert "inform it" in line
    assert line in plan.says


async def test_a_silent_node_is_not_reported_to_know_no_limits(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = await observed(nursery, 2)
    other = seen.nodes[1].state
    silent = f"127.0.0.1:{other.config.port}"
    seen.client.silent[silent] = Silence(trio.current_time(), "no answer")
    here = seen.client.nodes.seeds[0]
    ids = (other.cluster.myself.id.decode(),)
    info = QueueInfo(name="mail", limits=None, unlimited_nodes=ids)

    async def told(*_: object) -> Found[tuple[Address, QueueInfo | None]]:
        return Found([(here, info)], {silent: "no answer"})

    monkeypatch.setattr(operating.Queues, "limits", told)
    plan = await planned(seen, "limit", concurrency=2)

    assert not any("does not support limits" in each for each in plan.says)


async def test_the_page_of_a_queue_shows_its_limits_and_whether_it_waits_for_them(
    nursery: trio.Nursery,
) -> None:
    seen = await observed(nursery, 2)
    await seen.client.limit_queue("mail", concurrency=1, rate=100, burst=5)
    await seen.client.limit_queue("idle", rate=3, per=60)
    for _ in range(2):
        await seen.client.addjob("mail", "x", replicate=1)
    [_] = await seen.client.getjob("mail")
    nursery.start_soon(seen.client.getjob, "mail")

    with trio.fail_after(30):
        while not ((row := await shown(seen)) and row["limited"]):
            await trio.sleep(0.02)

    text = "1 leased, 100 per 1 s, burst 5"
    assert row["limits"] == {
        "text": text, "concurrency": 1, "rate": 100, "rate_per": 1.0, "burst": 5,
        "is_loose": False, "group_concurrency": 0, "group_rate": 0, "group_rate_per": 0.0,
        "group_burst": 0,
    }  # fmt: skip
    assert (row["jobs"], row["leased"]) == (1, 1)
    ids = [job.id for node in seen.nodes for job in await _queued(seen, node.state.config.port)]
    data, _ = await seen.observer.answer("job", {"id": ids[0]})
    assert data["waits_for"] == text
    idle = await shown(seen, "idle")
    assert idle is not None, "it has no job, and limits"
    assert idle["limits"]["text"] == "3 per 60 s"
    await seen.observer.counts.once()
    data, _ = await seen.observer.answer("queues", {"only": "limited", "sort": "name"})
    assert {each["name"] for each in data["rows"]} == {"idle", "mail"}
    totals = {each.name: each for each in (await Admin(seen.client).queues.all()).items}
    assert totals["mail"].limits == QueueLimits(1, 100, 1.0, 5)
    assert (totals["mail"].is_limited, totals["idle"].is_limited) == (True, False)


async def test_a_scan_has_the_same_limits_as_qstat(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    await seen.client.limit_queue("mail", rate=7, per=0.5, burst=3, is_loose=True)
    counts = seen.observer.counts

    await counts.once()
    [scanned] = [part.stats for part in counts.parts["mail"].values()]
    await counts.renew(["mail"])
    [asked] = [part.stats for part in counts.parts["mail"].values()]

    assert scanned == asked
    assert scanned.limits == QueueLimits(0, 7, 0.5, 3, True)


async def test_what_nodes_tell_of_limits_is_read(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    assert (await seen.client.queue_info("mail")).limits is None
    await seen.client.limit_queue("mail", concurrency=2)

    info = await seen.client.queue_info("mail")

    assert info.limits == QueueLimits(2)
    assert info.keeper == seen.nodes[0].state.cluster.myself.id.decode()
    assert info.set_at is not None
    assert (info.leased, info.is_limited, info.unlimited_nodes) == (0, False, ())
    await seen.client.limit_queue("mail")
    gone = await seen.client.queue_info("mail")
    assert (gone.limits, gone.keeper) == (None, "")
    assert gone.set_at is not None
    assert gone.set_at >= info.set_at
