"""A Spark cluster on loopback, from the pip package: a master and workers, each a process."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import attrs
import pyspark

from disque_trio.pipeline import java
from disque_trio.pipeline.session import CONF

_DEPLOY: Final = "org.apache.spark.deploy"
_PATIENCE_S: Final = 90


@attrs.define
class Standalone:
    """What runs."""

    master: str
    page: str
    """Where the master tells what it knows."""
    workers: list["subprocess.Popen[bytes]"]

    def facts(self) -> dict[str, Any]:
        """What the master knows."""
        with urlopen(f"{self.page}/json/", timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def kill_worker(self) -> None:
        """One machine is gone: its worker and its executor, at once."""
        worker = self.workers.pop()
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Standalone]:
    """A cluster whose workers have a processor each."""
    port, web = free_port(), free_port()
    found = Standalone(f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{web}", [])
    processes = []
    with (folder / "cluster.log").open("ab") as log:
        try:
            at = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web)]
            processes.append(_start(log, "master.Master", *at))
            _until(lambda: found.facts()["status"] == "ALIVE", folder)
            for number in range(workers):
                work = folder / f"worker-{number}"
                at = ["--host", "127.0.0.1", "--webui-port", str(free_port()), "-c", "1"]
                at += ["-m", "700m", "-d", str(work), found.master]
                found.workers.append(_start(log, "worker.Worker", *at))
            processes += found.workers
            _until(lambda: found.facts()["aliveworkers"] == workers, folder)
            yield found
        finally:
            for process in reversed(processes):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _start(log: Any, name: str, *arguments: str) -> "subprocess.Popen[bytes]":
    environment = os.environ | {
        "JAVA_HOME": str(java.find().home),
        "SPARK_CONF_DIR": str(CONF),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        "PYSPARK_PYTHON": sys.executable,
    }
    script = Path(pyspark.__file__).parent / "bin" / "spark-class"
    return subprocess.Popen(
        [str(script), f"{_DEPLOY}.{name}", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def _until(is_so: Any, folder: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        with suppress(OSError):
            if is_so():
                return
        time.sleep(0.1)  # they are other processes, in real time
    raise TimeoutError((folder / "cluster.log").read_text())
