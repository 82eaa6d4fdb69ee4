"""Stories of an app in simulated clusters."""

import socket
import time
from typing import Any

import anyio
import anyio.to_thread
import pytest
import trio

from disque_trio.contrib.encryption import Encryption
from disque_trio.testing.simulated.block_io import RealIoError
from disque_trio.testing.simulated.chaos import chaos
from disque_trio.testing.simulated.check import GuaranteeError
from disque_trio.testing.simulated.cluster import Cluster, NotDrainedError
from disque_trio.testing.simulated.kit import Sim
from disque_trio.testing.simulated.processes import SimError
from disque_trio.testing.simulated.run import ScenarioTooLongError
from disque_trio.worker import App, Codec, Zlib, current_job
from tests.sim.mutants.mutant import all_mutants
from tests.sim.mutants.swapping import applied
from tests.testing.bank import app, bank, careful, charge, charge_once, die, plain


def test_jobs_are_run_by_workers_in_virtual_time(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        for order in range(5):
            await charge_once.enqueue(order)
        await plain.using(delay=600).enqueue(5)
        await cluster.drained()
        assert bank.charges == dict.fromkeys(range(6), 1)
        assert 600 < cluster.time < 610
        assert cluster.jobs() == []

    disque_sim.run(story, app, state=bank, seeds=2)


def test_a_seed_is_one_history(disque_sim: Sim) -> None:
    logs = []

    async def story(cluster: Cluster) -> None:
        for order in range(5):
            await charge.enqueue(order)
        with cluster.crash("n1"):
            await cluster.sleep(5)
        await cluster.drained()
        logs.append([str(line) for line in cluster.log])

    disque_sim.run(story, app, state=bank, seeds=[1, 1, 2])

    assert logs[0] == logs[1] != logs[2]


def test_state_is_made_anew_for_each_seed(disque_sim: Sim) -> None:
    found = []

    async def story(cluster: Cluster) -> None:
        found.append(dict(bank.charges))
        await charge.enqueue(1)
        await cluster.drained()

    disque_sim.run(story, app, state=bank, seeds=3)

    assert found == [{}] * 3


@pytest.mark.parametrize("codec", [Zlib(above=10), Encryption({"a": bytes(32)})])
def test_bodies_may_be_any_bytes(disque_sim: Sim, codec: Codec) -> None:
    coded = App("disque://127.0.0.1:7711", codec=codec)

    @coded.task(name="send", queue="été", unique=True)
    async def send(text: str) -> None:
        bank.charges[0] = bank.charges.get(0, 0) + len(text)

    async def story(cluster: Cluster) -> None:
        with cluster.pause("n1"):
            for number in range(5):
                await send.enqueue(f"{number} to be sent")
        await cluster.drained()
        assert bank.charges[0] == 5 * len("0 to be sent")

    disque_sim.run(story, coded, state=bank, seeds=3)


# Faults.


def test_a_worker_that_is_killed_runs_nothing_more(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        await careful.enqueue(1)
        await cluster.sleep(1)
        [holder] = [name for name, each in cluster.workers.items() if each.runs]
        with cluster.crash(holder):
            await cluster.sleep(20)
            assert bank.closed == 0
        await cluster.drained()
        assert bank.closed == 1

    disque_sim.run(story, app, state=bank, seeds=3)


def test_a_worker_that_stands_still_goes_on_later(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        await charge.enqueue(1)
        await cluster.sleep(0.5)
        [holder] = [name for name, each in cluster.workers.items() if each.runs]
        with cluster.pause(holder):
            await cluster.sleep(45)
            assert bank.charges == {1: 2}
        await cluster.drained()
        assert not any(each.runs for each in cluster.workers.values())

    disque_sim.run(story, app, state=bank, seeds=1)


def test_a_partition_doubles_no_job_that_ends_in_its_lease(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        for order in range(5):
            await charge.enqueue(order)
        await cluster.sleep(5)
        with cluster.partition(["n1"], ["n2", "n3"]):
            await cluster.sleep(40)
        await cluster.drained()
        assert bank.charges == dict.fromkeys(range(5), 1)

    disque_sim.run(story, app, state=bank, seeds=3)


def test_a_worker_that_is_cut_off_loses_its_job_to_the_other(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        await careful.enqueue(1)
        await cluster.sleep(1)
        [holder] = [name for name, each in cluster.workers.items() if each.runs]
        with cluster.isolate(holder):
            await cluster.sleep(40)
            assert bank.closed == 1  # it was cancelled when its lease was over
            assert not cluster.workers[holder].runs
        await cluster.drained()
        assert bank.closed == 2

    disque_sim.run(story, app, state=bank, seeds=2)


def test_the_story_can_be_cut_off_too(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        active = cluster.isolate("story")
        cluster.later(3, active.undo)
        await charge.enqueue(1)
        assert cluster.time >= 3
        await cluster.drained()

    disque_sim.run(story, app, state=bank, seeds=1)


def test_a_worker_that_is_told_to_stop_ends_its_jobs(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        await charge.enqueue(1)
        await cluster.sleep(0.5)
        cluster.stop("w1")
        await cluster.until(lambda: not cluster.worker("w1").is_alive)
        await cluster.drained()
        assert bank.charges == {1: 1}

    disque_sim.run(story, app, state=bank, seeds=2, workers=1)


def test_clocks_of_nodes_may_drift(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        rates = [each.clock.ppm for each in cluster.world.hosts.values()]
        assert any(rates)
        await charge.enqueue(1)
        await cluster.drained()

    disque_sim.run(story, app, state=bank, seeds=1, drift_ppm=500)


def test_dead_jobs_count_as_ended(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        job = await die.enqueue()
        await cluster.drained()
        assert cluster.dead() == [job.id]

    disque_sim.run(story, app, seeds=1)


# What goes wrong.


def test_an_error_says_the_seed_what_has_happened_and_how_to_repeat_it(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        await charge.enqueue(7)
        await cluster.drained()
        assert cluster.plan.seed < 2

    with pytest.raises(AssertionError) as raised:
        disque_sim.run(story, app, state=bank)

    note = raised.value.__notes__[-1]
    assert note.startswith("disque_sim: seed 2\n")
    assert "charge begins" in note
    assert "effect  Bank.charge(7)" in note
    assert note.endswith(
        "again: pytest tests/testing/test_simulated.py::"
        "test_an_error_says_the_seed_what_has_happened_and_how_to_repeat_it --disque-seed 2"
    )


def test_jobs_that_are_left_are_named(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        job = await charge.using(delay=600).enqueue(1)
        with pytest.raises(NotDrainedError, match=job.id[:20]):
            await cluster.drained(limit=60)

    disque_sim.run(story, app, state=bank, seeds=1)


def test_a_story_that_does_not_end_is_ended(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        await trio.sleep_forever()

    with pytest.raises(ScenarioTooLongError, match="100 virtual seconds"):
        disque_sim.run(story, app, limit=100, seeds=1)


@pytest.mark.parametrize("way", ["anyio", "trio", "socket", "name"])
def test_real_sockets_are_refused(way: str, disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        match way:
            case "anyio":
                await anyio.connect_tcp("127.0.0.1", 1)
            case "trio":
                await trio.open_tcp_stream("127.0.0.1", 1)
            case "socket":
                with socket.socket() as plain:
                    plain.connect(("127.0.0.1", 1))
            case "name":
                await trio.socket.getaddrinfo("example.org", 80)

    with pytest.raises(RealIoError, match=r"testing/test_simulated\.py:\d+ opens a socket"):
        disque_sim.run(story, app, seeds=1)
    with socket.socket() as plain, pytest.raises(ConnectionRefusedError):
        plain.connect(("127.0.0.1", 1))


def test_a_blocking_client_is_refused(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        charge.blocking.enqueue(1)

    with pytest.raises(SimError, match="let an `async def` enqueue"):
        disque_sim.run(story, app, seeds=1)


def test_what_is_no_worker_is_said(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.stop("w9")

    with pytest.raises(SimError, match="there is no w9: there are n1, n2, n3, w1, w2"):
        disque_sim.run(story, app, seeds=1)


@pytest.mark.parametrize("state", [5, (1,)])
def test_state_that_cannot_be_made_anew_is_refused(state: Any, disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None: ...

    with pytest.raises(TypeError, match="cannot be restored between runs"):
        disque_sim.run(story, app, state=state)


def test_time_and_keys_come_from_the_simulation(disque_sim: Sim) -> None:
    shop, seen = App[None](), list[tuple[str | None, float]]()

    @shop.task(name="look", queue="q")
    async def look() -> None:
        job = current_job()
        seen.append((job.key, job.deadline - anyio.current_time()))

    async def story(cluster: Cluster) -> None:
        await look.enqueue()
        await cluster.drained()

    began = time.monotonic()
    disque_sim.run(story, shop, seeds=[3, 3])

    assert seen[0] == seen[1]
    assert 290 < seen[0][1] < 300
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("run_sync", [anyio.to_thread.run_sync, trio.to_thread.run_sync])
def test_time_stands_still_while_a_thread_is_out(run_sync: Any, disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        await run_sync(time.sleep, 0.1)
        assert cluster.time < 0.1

    disque_sim.run(story, app, seeds=1)


@pytest.mark.slow
def test_random_faults_lose_no_job(disque_sim: Sim) -> None:
    kinds = set[str]()

    async def story(cluster: Cluster) -> None:
        for order in range(5):
            await charge_once.using(delay=10 * order).enqueue(order)
        await chaos(cluster, 60)
        assert not cluster.active_faults
        await cluster.drained()
        assert cluster.lost() == []
        assert sorted(bank.charges) == list(range(5))
        kinds.update(line.what.split()[-1] for line in cluster.log)

    disque_sim.run(story, app, state=bank, seeds=8)

    assert {"crash", "pause", "killed", "stopped"} < kinds


def test_a_job_is_lost_with_its_last_copy(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        job = await charge.using(delay=60, replicate=1).enqueue(1)
        assert cluster.lost() == []
        for node in ("n1", "n2", "n3"):
            cluster.restart(node)
        assert cluster.lost() == [job.id]

    disque_sim.run(story, app, seeds=1)


def test_connections_of_a_worker_may_break(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        await charge_once.enqueue(1)
        await cluster.sleep(0.5)
        cluster.reset("w1")
        await cluster.drained()
        assert bank.charges == {1: 1}

    disque_sim.run(story, app, state=bank, seeds=2, workers=1)


def test_a_reply_that_is_under_way_is_lost_with_its_connection(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        stream = await cluster.story.connect(cluster.addresses.seeds[0], 1)
        with cluster.isolate("story"):
            stream.receive_reply(b"late")
            cluster.reset("story")
            stream.receive_reply(b"too late")
        assert await stream.receive() == b"$4\r\nlate\r\n"
        with pytest.raises(anyio.EndOfStream):
            await stream.receive()

    disque_sim.run(story, app, seeds=1)


def test_a_story_knows_who_runs_what(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        with pytest.raises(SimError, match="w1 runs no job"):
            cluster.node_of("w1")
        await charge_once.enqueue(1)
        await cluster.until(cluster.running)
        [worker] = cluster.running()
        assert cluster.node_of(worker) in {"n1", "n2", "n3"}

    disque_sim.run(story, app, state=bank, seeds=1)


def test_a_cluster_that_breaks_its_promises_fails_the_story(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        await charge_once.using(delay=5).enqueue(1)
        await cluster.drained()

    disque_sim.run(story, app, state=bank, seeds=1)
    with applied(all_mutants()["late-after-delay"]), pytest.raises(GuaranteeError) as raised:
        disque_sim.run(story, app, state=bank, seeds=1)

    assert "L8 (a job is queued when its time has come, not later): " in str(raised.value)
    assert raised.value.__notes__[0].startswith("disque_sim: seed 0")
