"""`Server`, the value of the fixture `disque_server`."""

import contextlib
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import anyio
import attrs

from disque_trio.client import BlockingClient, Client
from disque_trio.client.address import Address, Cluster
from disque_trio.testing.server.child import LOOPBACK
from disque_trio.worker.app import App
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import SECOND, Queue, Settings
from disque_trio.worker.runtime import Runtime, for_process

_END_S: Final = 10.0
_EMPTY_S: Final = 10.0
_POLL_S: Final = 0.02
_DRAIN_S: Final = 5


class ServerError(RuntimeError):
    """The nodes do not run, or are not empty."""


@attrs.frozen(eq=False)
class Server:
    """The nodes of a cluster, which apps use instead of their own."""

    cluster: Cluster

    @property
    def url(self) -> str:
        """A URL of all nodes, for `App` and clients."""
        return "disque://" + ",".join(map(str, self.cluster.seeds))

    @contextlib.asynccontextmanager
    async def worker(
        self, app: App[Any], *, concurrency: int = 10, is_burst: bool = False
    ) -> AsyncIterator[Worker]:
        """Run a worker for the jobs and schedules of the app during the block. At the end of the
        block running jobs have 5 seconds to end. With `is_burst` the worker ends when there are no
        jobs, and the end of the block waits for that."""
        settings = Settings(
            nodes=tuple(map(str, self.cluster.seeds)),
            queues=tuple(Queue(name=name.encode(errors="surrogateescape")) for name in app.queues),
            concurrency=concurrency,
            is_burst=is_burst,
            drain=_DRAIN_S * SECOND,
        )
        async with app.handler() as handler:
            worker = Worker(settings=settings, handler=handler, cluster=self.cluster)
            async with anyio.create_task_group() as tasks:
                await tasks.start(app.schedules.keeper().beside, worker.run)
                yield worker
                if not is_burst:
                    worker.drain()

    async def run_all(self, app: App[Any]) -> None:
        """Run the jobs that are enqueued now, and the jobs that they add, with a burst worker. Jobs
        that are due later remain."""
        async with self.worker(app, is_burst=True):
            pass

    def run_all_blocking(self, app: App[Any]) -> None:
        """As `run_all`, for tests without an event loop."""
        anyio.run(self.run_all, app, backend="trio")

    def clear(self) -> None:
        """Remove all jobs, and all limits of queues, from all nodes. Raises `ServerError` if jobs
        are still being added after 10 seconds."""
        ends = time.monotonic() + _EMPTY_S
        with BlockingClient(self.cluster) as client:
            while any(self._clear(client, each) for each in self.cluster.seeds):
                if time.monotonic() > ends:
                    raise ServerError(f"jobs are still added to {self.url}: end what adds them")
                time.sleep(_POLL_S)

    def _clear(self, client: BlockingClient, address: Address) -> int:
        """Remove jobs and limits from one node. Returns the number of jobs."""
        connection = client.connect(address)

        def ask(*words: bytes) -> Any:
            connection.send(words)
            return connection.receive()

        jobs, queues = (_values(ask(b"INFO", section)) for section in (b"jobs", b"queues"))
        ask(b"DEBUG", b"FLUSHALL")
        if b"limited_queues" in queues:  # limits belong to the cluster, not to its jobs
            _, names = ask(b"QSCAN", b"0", b"BUSYLOOP", b"UNQUEUED")
            for name in names:
                ask(b"QUEUE", b"LIMIT", name, b"NONE")
        return int(jobs[b"registered_jobs"])

    @contextlib.contextmanager
    def for_a_test(self) -> Iterator["Server"]:
        """Let apps use these nodes, which are empty."""
        self.clear()
        world = Runtime(
            client=lambda _: Client(self.cluster),
            blocking_client=lambda _: BlockingClient(self.cluster),
        )
        with for_process(world):
            yield self


def _values(info: bytes) -> dict[bytes, bytes]:
    return dict(line.partition(b":")[::2] for line in info.splitlines())


@contextlib.contextmanager
def running(nodes: int) -> Iterator[Server]:
    """Run a cluster of this many nodes until the block or this process ends."""
    words = (sys.executable, "-m", "disque_trio.testing.server.child", str(nodes))
    # A separate session: Ctrl-C at the terminal is for the tests.
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert process.stdout is not None
        ports = process.stdout.readline().split()
        if len(ports) != nodes:
            raise ServerError("the nodes have not begun: see the standard error above")
        yield Server(Cluster([Address(host=LOOPBACK, port=int(port)) for port in ports]))
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
