"""Spark sessions: finds a Java, sets quiet logs, loopback and Arrow, and ends the JVM."""

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from disque_trio.pipeline import java, python
from disque_trio.pipeline.errors import INSTALL, PipelineError
from disque_trio.statemachine.base import LAST_PORT

CONF: Final = Path(__file__).parent / "conf"
"""Has a log4j2.properties that silences Spark's logs."""
LOOPBACK: Final = "127.0.0.1"
MEMORY: Final = "2g"
_SHUFFLES: Final = "16"
"""Files that each task of one machine writes for the next stage. Spark's 200 are for clusters."""
_KINDS: Final = "100"
"""Values that a column may be compared with so that groups of rows without any of them are skipped;
by default it is 10, and views choose rows of more kinds."""
_REACH_S: Final = 5.0
_END_S: Final = 30.0
"""A JVM that has not ended by then hangs, and is killed."""
_LOCAL: Final = re.compile(r"local(\[(\*|\d+)(,\d+)?\]|-cluster\[\d+,\d+,\d+\])?")
_STANDALONE: Final = re.compile(r"spark://([^/:,]+:\d+(?:,[^/:,]+:\d+)*)")
_OTHERS: Final = re.compile(r"yarn|k8s://.+")
_MEMORY: Final = re.compile(r"\d+[mgt]", re.IGNORECASE)


def start(
    master: str = "local[*]",
    *,
    app: str = "disque-trio",
    memory: str = MEMORY,
    settings: Mapping[str, str] | None = None,
) -> Any:
    """A `SparkSession`: a new one, or the one that this process has with the same master.

    `memory` is the driver's, in local mode that of all of Spark; `settings` override the defaults.
    With a `local` master or one on loopback every socket is on loopback. Raises `PipelineError`.
    """
    sql = spark_module("pyspark.sql")
    check_master(master)
    if _MEMORY.fullmatch(memory) is None:
        raise PipelineError(f"{memory} is not a memory size for Spark, such as 512m or 2g")
    # It prints errors to standard error as JSON that are raised as well.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    active = _active()
    if active is not None:
        return _same(active, master)
    _reach(master)
    found = java.find()
    builder = sql.SparkSession.builder.master(master).appName(app)
    chosen = {**_settings(master, memory), **(settings or {})}
    for name, value in chosen.items():
        builder = builder.config(name, value)
    with _environment(_variables(master, found)), _own_interrupts(), _no_orphans():
        try:
            return builder.getOrCreate()
        except Exception as error:  # any error of a JVM
            reason = first_line(error)  # asks the JVM
            _end_gateway()
            raise PipelineError(
                f"Spark did not start on {master}: {reason}; "
                "'disque-trio pipeline doctor --start' shows possible reasons"
            ) from error


def stop(spark: Any) -> None:
    """End the session and its JVM."""
    try:
        spark.stop()
    finally:
        _end_gateway()


@contextmanager
def running(
    master: str = "local[*]",
    *,
    app: str = "disque-trio",
    memory: str = MEMORY,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Any]:
    """A session from `start`, which is ended afterwards unless it existed before."""
    was_there = is_installed() and _active() is not None
    spark = start(master, app=app, memory=memory, settings=settings)
    try:
        yield spark
    finally:
        if not was_there:
            stop(spark)


def is_installed() -> bool:
    """Is PySpark installed?"""
    return find_spec("pyspark") is not None


def spark_module(name: str) -> Any:
    """A module of PySpark. Raises `PipelineError` where it is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise PipelineError(f"Spark is missing ({error}): {INSTALL}") from None


def check_master(master: str) -> None:
    """Raises `PipelineError` unless it is the address of a Spark master."""
    if not any(each.fullmatch(master) for each in (_LOCAL, _STANDALONE, _OTHERS)):
        raise PipelineError(
            f"{master} is not a master of Spark: local[*] for this machine, local[2] for two of "
            "its processors, or spark://HOST:PORT for a cluster"
        )
    if not all(0 < port <= LAST_PORT for _, port in _addresses(master)):
        # The C library would take the lower 16 bits.
        raise PipelineError(f"{master} is not a master of Spark: ports are from 1 to {LAST_PORT}")


def is_local(master: str) -> bool:
    """Does everything run on this machine?"""
    return _LOCAL.fullmatch(master) is not None


def first_line(error: BaseException) -> str:
    """The message of a job's error: the last line of its Python traceback if it has one, or the
    message of the JVM without the Java traceback."""
    _, _, trace = str(error).partition("Traceback (most recent call last):\n")
    for line in trace.splitlines():
        if line and not line[0].isspace():
            return line
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # Py4J begins with a line about itself.
    messages = [line for line in lines if not line.startswith(("An error occurred while", ":"))]
    causes = [line.lstrip(": ") for line in lines if line.startswith(":")]
    return next(iter(causes or messages), type(error).__name__)


def why(error: BaseException, what: str) -> str:
    """A sentence about a job's error: it begins with `what`, or, of a module that an executor does
    not have, says how to get it."""
    text = first_line(error)
    if text.startswith(("ModuleNotFoundError", "ImportError")):
        return (
            f"an executor cannot import what it needs: {text}. Its Python must have what "
            f"disque-trio depends on: {INSTALL} there, or name another with PYSPARK_PYTHON"
        )
    return f"{what}: {text}"


def _active() -> Any:
    """The session of this process. PySpark's own active session is that of the thread."""
    if spark_module("pyspark").SparkContext._active_spark_context is None:
        return None
    return spark_module("pyspark.sql").SparkSession.builder.getOrCreate()


def _same(active: Any, master: str) -> Any:
    has = active.conf.get("spark.master")
    if has != master:
        raise PipelineError(f"this process has a Spark session on {has}, not on {master}")
    return active


def _addresses(master: str) -> list[tuple[str, int]]:
    match = _STANDALONE.fullmatch(master)
    parts = match[1].split(",") if match else []
    return [(host, int(port)) for host, _, port in (part.rpartition(":") for part in parts)]


def _is_on_loopback(master: str) -> bool:
    hosts = [host for host, _ in _addresses(master)]
    return is_local(master) or (
        bool(hosts) and all(host == "localhost" or host.startswith("127.") for host in hosts)
    )


def _reach(master: str) -> None:
    """Check the address first: Spark would try for a minute, then report a page of Java."""
    if master == "yarn" and not {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & os.environ.keys():
        raise PipelineError(
            "Spark finds no YARN: set HADOOP_CONF_DIR to the folder with the core-site.xml and "
            "yarn-site.xml of the cluster"
        )
    failure = ""
    addresses = _addresses(master)
    for address in addresses:
        try:
            with socket.create_connection(address, timeout=_REACH_S):
                return
        except OSError as error:
            failure = error.strerror or str(error)
    if addresses:
        raise PipelineError(
            f"no Spark master answers at {master}: {failure}; check that it is running"
        )


def _settings(master: str, memory: str) -> dict[str, str]:
    bound = {
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.host": LOOPBACK,
    }
    return {
        **(bound if _is_on_loopback(master) else {}),
        **({"spark.sql.shuffle.partitions": _SHUFFLES} if is_local(master) else {}),
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.pushdown.inFilterThreshold": _KINDS,
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir(), "disque-trio-warehouse")),
    }


def _variables(master: str, found: java.Java) -> dict[str, str]:
    """Environment variables for a JVM and its Python processes."""
    if is_local(master):
        worker = python.launcher()
    else:
        worker = os.environ.get("PYSPARK_PYTHON", sys.executable)
    variables = {
        "JAVA_HOME": str(found.home),
        "PYSPARK_PYTHON": worker,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    if _is_on_loopback(master):
        variables["SPARK_LOCAL_IP"] = LOOPBACK
    if not {"SPARK_CONF_DIR", "SPARK_HOME"} & os.environ.keys():
        variables["SPARK_CONF_DIR"] = str(CONF)
    return variables


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Restore the handler of Ctrl-C, which PySpark replaces and never gives back."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextmanager
def _no_orphans() -> Iterator[None]:
    """Kill the JVM if its start is interrupted. PySpark forgets it then, and removes the folder in
    which it would write its port: its main thread fails, and other threads keep it for ever."""
    context, gateways = spark_module("pyspark").SparkContext, spark_module("pyspark.java_gateway")
    begin, begun = gateways.Popen, list[Any]()

    def noted(*words: Any, **options: Any) -> Any:
        begun.append(begin(*words, **options))
        return begun[-1]

    gateways.Popen = noted
    try:
        yield
    except Exception:
        raise
    except BaseException:
        for process in begun:
            process.kill()
            process.wait()
            if context._gateway is not None and context._gateway.proc is process:
                context._gateway = context._jvm = None
        raise
    finally:
        gateways.Popen = begin


def _end_gateway() -> None:
    """End the JVM, which PySpark keeps for the next session and has no public way to end."""
    context = spark_module("pyspark").SparkContext
    gateway = context._gateway
    if gateway is None:
        return
    context._gateway = context._jvm = None
    gateway.shutdown()
    if gateway.proc is not None:
        gateway.proc.stdin.close()
        try:
            gateway.proc.wait(_END_S)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
            gateway.proc.wait()
