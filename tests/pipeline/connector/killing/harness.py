"""Starts queries, kills them, feeds them, and counts."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow.parquet as pq

from tests.cluster.processes import Cluster, eventually
from tests.cluster.talk import Client, ClosedError, RefusedError
from tests.pipeline.connector.desk import names_of
from tests.pipeline.connector.killing.query import ROWS_PER_SECOND, writer

START_S: Final = 600.0
"""How long a session may take to start on a machine that is busy."""
CATCH_UP_S: Final = 1800.0
"""The same to take all jobs that are left."""
_CHUNK: Final = 25


@attrs.define(eq=False)
class Queries:
    """Queries in one driver, which may be killed and started again."""

    kinds: tuple[str, ...]
    folder: Path
    cluster: Cluster
    kills: list[str] = attrs.field(factory=list)
    replicas: int = 2
    """Copies of a job that the sink adds."""
    excuses: tuple[str, ...] = ("failed to connect back", "no answer in time")
    """With these last words a query may end; it is started again. Spark waits 10 s for a Python
    process to start, and the query 10 s for a node: too little where much else runs."""
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin to start."""
        self.folder.mkdir(exist_ok=True)
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self._words(",".join(names_of(self.cluster)))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "REPLICATE": str(self.replicas)},
            )

    def _words(self, nodes: str) -> tuple[str, ...]:
        program = "tests.pipeline.connector.killing.query"
        return "-m", program, ",".join(self.kinds), str(self.folder), nodes

    def batches(self, kind: str) -> int:
        """How many batches are over, in all its lives."""
        path = self.folder / f"batches-{kind}"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def wait_for_batches(self, count: int) -> None:
        """Wait until so many more are over, of each query."""
        wanted = {kind: self.batches(kind) + count for kind in self.kinds}
        eventually(lambda: self._have(wanted), START_S, f"{count} more batches of {self.kinds}")

    def _have(self, wanted: dict[str, int]) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            assert self._is_excused(), f"the query has ended: {self.log()}"
            self.kills.append("itself")
            self._wait_gone()
            self.start()
        return all(self.batches(kind) >= count for kind, count in wanted.items())

    def kill(self, what: str) -> None:
        """kill -9 of the driver, its JVM, an executor, or a Python process of Spark; then wait
        until all its processes have gone. Without an executor, Spark starts another."""
        assert self._process is not None
        while not _kill(self._victim(what)):
            pass  # it ended by itself, as tasks' processes do: another one
        self.kills.append(what)
        if what == "executor":
            return
        if what == "worker":  # its query fails, unless it had nothing to do
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(3)
            self.close()
        self._wait_gone()

    def _victim(self, what: str) -> int:
        assert self._process is not None
        others = [(pid, name) for pid, name in self._processes() if pid != self._process.pid]
        jvms = [pid for pid, name in others if name == "java"]
        executors = [pid for pid in jvms if _is_executor(pid)]
        assert executors or what != "executor"
        workers = [pid for pid, name in others if name != "java"]
        drivers = [pid for pid in jvms if pid not in executors]
        found = {"JVM": drivers, "executor": executors, "worker": workers}
        return (found.get(what) or [self._process.pid])[-1]

    def finish(self) -> None:
        """Let it run once more, to the end of what there is."""
        self.close()  # two at once would have one checkpoint
        (self.folder / "finish").touch()
        while True:
            self.start()
            assert self._process is not None
            code = self._process.wait(CATCH_UP_S)
            self._wait_gone()
            if not code:
                return
            assert self._is_excused(), self.log()

    def finish_in(self, spark: Any) -> None:
        """The same, in a session that is there already."""
        nodes = ",".join(names_of(self.cluster))
        for kind in self.kinds:
            stream = writer(kind, spark, self.folder, nodes).trigger(availableNow=True)
            stream.start().awaitTermination()

    def is_running(self) -> bool:
        """Has it been started, and not ended?"""
        return self._process is not None and self._process.poll() is None

    def close(self) -> None:
        """End whatever is left."""
        if self._process is None:
            return
        for pid, _ in self._processes():
            _kill(pid)
        self._process.wait()

    def log(self) -> str:
        """The end of what it said."""
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    def _is_excused(self) -> bool:
        return any(excuse in self.log() for excuse in self.excuses)

    def _wait_gone(self) -> None:
        assert self._process is not None
        self._process.wait(60)
        eventually(lambda: not list(self._processes()), 60, "the query's processes have gone")

    def _processes(self) -> Iterator[tuple[int, str]]:
        """Those of its session that live, with their names."""
        assert self._process is not None
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                pid, _, rest = path.read_text().partition(" (")
            except OSError:
                continue
            name, _, facts = rest.rpartition(") ")
            state, _, _, session, *_ = facts.split()
            if int(session) == self._process.pid and state != "Z":
                yield int(pid), name


def _kill(pid: int) -> bool:
    """False if it has gone already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _is_executor(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


@attrs.define(eq=False)
class Producer:
    """Adds jobs to the queue `in` at a rate. Only those that the cluster has confirmed count."""

    cluster: Cluster
    jobs_per_second: int
    retry_s: int
    seed: int
    """Of which node it asks when."""
    jobs: dict[str, int] = attrs.field(factory=dict)
    """The number in the body of each confirmed job, by id."""
    _is_over: threading.Event = attrs.field(factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._work, name="producer")
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for the end."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def wait_for_more(self, count: int) -> None:
        """Wait until it has added so many more."""
        wanted = len(self.jobs) + count
        eventually(lambda: len(self.jobs) >= wanted, START_S, f"{count} more jobs")

    def _work(self) -> None:
        rng = random.Random(self.seed)
        number = 0
        due = time.monotonic()
        clients: dict[int, Client] = {}
        while not self._is_over.is_set():
            server = rng.choice([s for s in self.cluster.servers if s.is_running()])
            numbers = range(number, number + _CHUNK)
            number += _CHUNK
            try:
                client = clients.get(server.port)
                if client is None or not client.is_usable:
                    client = clients[server.port] = Client(server.port, patience_s=5.0)
                self._add(client, numbers)
            except (OSError, ClosedError, RefusedError):
                clients.pop(server.port).close() if server.port in clients else None
            due += _CHUNK / self.jobs_per_second
            self._is_over.wait(max(due - time.monotonic(), 0.0))
        for client in clients.values():
            client.close()

    def _add(self, client: Client, numbers: range) -> None:
        terms = ("REPLICATE", 2, "RETRY", self.retry_s, "TTL", 7200)
        for number in numbers:
            client.send("ADDJOB", "in", str(number), 3000, *terms)
        for number in numbers:
            reply = client.receive()
            self.jobs[reply.text.decode()] = number  # type: ignore[union-attr]


class Worker:
    """Takes jobs of the queue `out` at all nodes, and acknowledges them."""

    def __init__(self, cluster: Cluster, row_of: Callable[[bytes], int] = int) -> None:
        self.jobs: defaultdict[int, set[bytes]] = defaultdict(set)
        """The ids under which each row has come."""
        self._cluster = cluster
        self._row_of = row_of
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="worker")
        self._thread.start()

    def _work(self) -> None:
        while not self._is_over.is_set():
            for server in self._cluster.servers:
                try:
                    client = Client(server.port, patience_s=5.0)
                except OSError:
                    continue
                try:
                    while got := client.get("out", count=500):
                        for job in got:
                            self.jobs[self._row_of(job.body)].add(job.id)
                        client.call("ACKJOB", *(job.id for job in got))
                except (OSError, ClosedError, RefusedError):
                    pass
                finally:
                    client.close()
            self._is_over.wait(0.2)

    def twice(self) -> list[int]:
        """Rows of which there were several jobs."""
        return [row for row, jobs in self.jobs.items() if len(jobs) > 1]

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()


def rows_in_files(folder: Path) -> Counter[str]:
    """How often each job is in the files that Spark has committed."""
    found: Counter[str] = Counter()
    names = set()
    for path in (folder / "out" / "_spark_metadata").glob("[0-9]*"):
        lines = path.read_text().splitlines()[1:]
        names |= {json.loads(line)["path"].removeprefix("file://") for line in lines}
    for name in names:
        found.update(pq.read_table(name, columns=["job_id"])["job_id"].to_pylist())
    return found


def rows_committed(folder: Path) -> int:
    """How many numbers the rate source has given to batches that Spark has committed."""
    last = max(int(path.name) for path in (folder / "sink" / "commits").glob("[0-9]*"))
    seconds = (folder / "sink" / "offsets" / str(last)).read_text().splitlines()[-1]
    return int(seconds) * ROWS_PER_SECOND
