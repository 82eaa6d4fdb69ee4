"""This project's clients with real nodes: nodes that die, tasks that are cancelled, forks, TLS."""

import os
import re
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from disque_trio.client.blocking import BlockingClient
from disque_trio.client.client import Client
from disque_trio.client.errors import LostError
from disque_trio.client.nodes import NoNodeError
from disque_trio.client.records import Job
from disque_trio.client.refusals import LeaseLostError
from tests.certificates import Authority
from tests.client.running import KINDS, talk
from tests.cluster.processes import Cluster, Fleet, Server, free_port

JOBS = 200


def url(*servers: Server) -> str:
    return "disque://" + ",".join(f"127.0.0.1:{server.port}" for server in servers)


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_goes_its_whole_way(kind: str, pair: Cluster) -> None:
    queue = f"way-{kind}"

    async def conversation(client: Any) -> None:
        job_id = await client.addjob(queue, "\udcff", replicate=2, retry=60)
        assert (await client.show(job_id)).repl == 2
        assert [job.id for job in await client.qpeek(queue)] == [job_id]
        (job,) = await client.getjob(queue, timeout=10)
        assert (job.id, job.queue, job.body) == (job_id, queue, b"\xff")
        assert await client.working(job_id) == 60
        assert await client.nack(job_id) == 1
        (job,) = await client.getjob(queue, timeout=10)
        assert job.nacks == 1
        assert await client.ackjob(job_id) == 1
        assert await client.getjob(queue, timeout=0) == []

    talk(kind, url(*pair.servers), conversation)


@pytest.mark.parametrize("kind", KINDS)
def test_what_workers_and_operators_use_works_with_real_nodes(kind: str, pair: Cluster) -> None:
    queue = f"all-{kind}"

    async def work(client: Any) -> None:
        job_id = await client.addjob(queue, "body", unique="k", replicate=2, retry=60, priority=5)
        (job,) = await client.getjob(queue, timeout=10, with_meta=True, is_tied=True)
        assert (job.meta.attempt, job.meta.priority, job.meta.key) == (1, 5, "k")
        assert 0 < job.meta.lease <= 60 < job.meta.ttl
        assert await client.working(job) == 60
        assert await client.working_all(job) == [60]
        assert (await client.show_key(queue, "k")).id == job_id
        assert (await client.qstat(queue)).leased == 1
        assert await client.release(job) == 1
        (again,) = await client.getjob(queue, timeout=10, with_meta=True)
        assert (again.id, again.meta.attempt) == (job_id, 1), "a RELEASE counts nowhere"
        with pytest.raises(LeaseLostError):
            await client.working(job)
        assert await client.nack(job) == 0
        assert await client.nack(again, dead="no such user") == 1
        assert await client.waitjob(job_id) == "dead"
        assert (await client.show(job_id)).more["reason"] == b"no such user"
        (dead,) = (await client.jscan(queue=queue, states=["dead"], count=100)).items
        assert dead.id == job_id
        assert await client.redrive(job_id) == 1
        assert queue in (await client.qscan(count=100)).items
        assert await client.cancel_key(queue, "k") == 1
        assert await client.unblock(99) == await client.purge(queue, is_dead=True) == 0

    talk(kind, url(*pair.servers), work)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_nothing_is_lost_when_a_node_dies_under_many_tasks(backend: str, fleet: Fleet) -> None:
    cluster = fleet.cluster(3)
    added: set[str] = set()
    done: set[str] = set()

    async def produce(client: Client, number: int) -> None:
        for each in range(JOBS // 4):
            try:
                job_id = await client.addjob("q", f"{number}-{each}", replicate=2, retry=5)
            except LostError:
                continue  # it may have been added
            added.add(job_id)

    async def consume(client: Client) -> None:
        while not (len(added) >= JOBS // 2 and added <= done):
            for job in await client.getjob("q", count=10, timeout=1):
                await client.ackjob(job.id)
                done.add(job.id)

    async def main() -> None:
        async with Client(url(*cluster.servers)) as client:
            async with anyio.create_task_group() as group:
                for number in range(4):
                    group.start_soon(produce, client, number)
                await anyio.sleep(0.05)
                await anyio.to_thread.run_sync(cluster.servers[0].kill)
            with anyio.fail_after(120):
                async with anyio.create_task_group() as group:
                    for _ in range(3):
                        group.start_soon(consume, client)

    anyio.run(main, backend=backend)
    assert added <= done


def cancel_while_jobs_come(backend: str, where: str, queue: str) -> None:
    """Cancel thirty tasks that wait, each while a job comes; then all jobs are there at once."""
    taken: list[str] = []
    given_back: list[Job] = []

    async def take(client: Client, scope: anyio.CancelScope) -> None:
        with scope:
            taken.extend(job.id for job in await client.getjob(queue))

    async def main() -> None:
        added = []
        async with Client(where) as client:
            for _ in range(30):
                async with anyio.create_task_group() as group:
                    scope = anyio.CancelScope()
                    group.start_soon(take, client, scope)
                    await anyio.sleep(0.01)
                    added.append(await client.addjob(queue, b"body"))
                    scope.cancel()
            # Its lease would be 300 s.
            while len(set(taken)) < len(added) and (jobs := await client.getjob(queue, timeout=60)):
                taken.extend(job.id for job in jobs)
                given_back.extend(jobs)
        assert not any(job.additional_deliveries for job in given_back), "by RELEASE"
        assert set(taken) == set(added)

    anyio.run(main, backend=backend)


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_no_job_is_held_by_a_task_that_was_cancelled(backend: str, server: Server) -> None:
    cancel_while_jobs_come(backend, url(server), f"cancelled-{backend}")


@pytest.mark.sample(2)
@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_nor_over_tls(backend: str, fleet: Fleet, tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    signed, port = authority.sign(), free_port()
    files = ("--tls-cert-file", signed.cert, "--tls-key-file", signed.key)
    fleet.server("--tls-port", str(port), *files, "--tls-auth-clients", "no")

    where = f"disques://127.0.0.1:{port}?tls_ca_file={authority.file}"
    cancel_while_jobs_come(backend, where, "cancelled")


def test_a_forked_process_leaves_the_connections_of_its_parent_alone(server: Server) -> None:
    with BlockingClient(url(server)) as client:
        job_id = client.addjob("forked", b"body")
        child = os.fork()
        if not child:
            os._exit(0 if client.qlen("forked") == 1 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert client.ackjob(job_id) == 1


@pytest.mark.slow
def test_a_frozen_node_is_given_up_for_another(fleet: Fleet) -> None:
    cluster = fleet.cluster(2, "--cluster-node-timeout", "15000")
    first, second = cluster.servers
    with BlockingClient(url(first, second), patience_s=0.5) as client:
        assert client.qlen("q") == 0
        first.freeze()
        try:
            began = time.monotonic()
            job_id = client.addjob("q", b"body", replicate=1)
        except LostError:
            job_id = client.addjob("q", b"body", replicate=1)
        finally:
            first.thaw()
    assert time.monotonic() - began < 60
    assert second.client.show(job_id.encode())["id"] == job_id.encode()


@pytest.mark.parametrize("kind", KINDS)
def test_tls_and_a_password(kind: str, fleet: Fleet, tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    signed, port = authority.sign(), free_port()
    files = ("--tls-cert-file", signed.cert, "--tls-key-file", signed.key)
    server = fleet.server("--tls-port", str(port), *files, "--tls-ca-cert-file", authority.file)
    server.client.call("CONFIG", "SET", "requirepass", "pw")
    options = f"tls_ca_file={authority.file}&tls_cert_file={signed.cert}&tls_key_file={signed.key}"

    async def conversation(client: Any) -> None:
        job_id = await client.addjob("q", b"body")
        assert [job.id for job in await client.getjob("q", timeout=10)] == [job_id]

    async def refused(client: Any) -> None:
        with pytest.raises(NoNodeError, match="certificate"):
            await client.qlen("q")

    talk(kind, f"disques://:pw@127.0.0.1:{port}?{options}", conversation)
    talk(kind, f"disques://:pw@127.0.0.1:{port}", refused)


def test_the_examples_of_the_page_run(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    page = Path("docs/client.md").read_text(encoding="utf-8")
    first, second, third = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    with BlockingClient(url(server)) as client:
        for example in (first, second):
            exec(example.replace("127.0.0.1:7711", f"127.0.0.1:{server.port}"), {})
            assert client.qlen("mail") == 0
        known: dict[str, Any] = {"client": client, "names": ["ada", "bob"]}
        exec(third, known)
        assert [job.id for job in client.getjob("mail", count=2)] == known["results"]

    assert capsys.readouterr().out == "True b'to: ada'\n"
