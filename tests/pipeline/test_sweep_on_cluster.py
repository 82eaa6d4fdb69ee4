"""A sweep on a real Spark cluster, of which a machine is lost in the midst."""

import json
import os
import site
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from disque_trio.cli.sim.pool import Task, run_task
from disque_trio.pipeline.lake.store import Lake
from disque_trio.statemachine.form import FORM
from tests.pipeline.standalone import Standalone, standalone

TINY = """
schema = 1
name = "{name}"
[cluster]
nodes = 3
[[producer]]
rate = 4
job = {{ replicate = 2, retry = "1s" }}
[[consumer]]
ack = {{ ackjob = 100, none = {none} }}
[end]
chaos = "2s"
drain = "1s"
"""
"""Jobs of those that nobody acknowledges come again, which is a failure: the cause is D1."""


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """A Python with all that this package depends on, but without this package."""
    script = tmp_path / "python"
    packages = site.getsitepackages()[0]
    # Without its site module, Python does not see where an editable package lies.
    path = f'PYTHONPATH="{packages}${{PYTHONPATH:+:$PYTHONPATH}}"'
    script.write_text(f'#!/bin/sh\n{path} exec {sys.executable} -S "$@"\n')
    script.chmod(0o755)
    return script


def scenario(folder: Path, name: str, none: int = 0) -> str:
    path = folder / f"{name}.toml"
    path.write_text(TINY.format(name=name, none=none))
    return str(path)


def sweep_losing_a_worker(
    cluster: Standalone, folder: Path, python: Path, arguments: list[str], enough: int
) -> tuple[int, str]:
    """Run a sweep, and kill a worker when so many results have come."""
    out = folder / "out" / "results.jsonl"
    command = [sys.executable, "-m", "disque_trio", "sim", "sweep", *arguments]
    command += ["--out", str(out.parent), "--spark", cluster.master]
    command += ["--spark-conf", "spark.executor.memory=500m"]
    with subprocess.Popen(
        command,
        env=os.environ | {"PYSPARK_PYTHON": str(python)},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as sweep:
        try:
            wait_until(lambda: out.exists() and out.read_text().count("\n") >= enough, sweep)
            cluster.kill_worker()
            printed, _ = sweep.communicate(timeout=1200)
        finally:
            sweep.kill()
    return sweep.returncode, printed


def wait_until(is_so: Callable[[], bool], sweep: "subprocess.Popen[str]") -> None:
    while not is_so():
        if sweep.poll() is not None:
            raise AssertionError(sweep.communicate()[0])
        time.sleep(0.1)  # it is another process, in real time


def lines(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "out" / "results.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def check(folder: Path, paths: list[str], seeds: int) -> None:
    """All results have come once, and are those of this process."""
    found = [(line["path"], line["seed"]) for line in lines(folder)]
    assert sorted(found) == [(path, seed) for path in sorted(paths) for seed in range(seeds)]
    for line in lines(folder):
        here = run_task(Task(line["path"], line["seed"], "heap", 60)).result
        assert (line["digest"], line["is_ok"]) == (here.digest, here.is_ok)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_sweep_loses_a_machine_and_no_result(tmp_path: Path, bare_python: Path) -> None:
    importing = [str(bare_python), "-c", "import disque_trio"]
    assert subprocess.run(importing, cwd="/", check=False, capture_output=True).returncode == 1
    paths = [scenario(tmp_path, "calm"), scenario(tmp_path, "careless", 2)]
    lake = tmp_path / "lake"
    arguments = [*paths, "--seeds", "0:40", "--recheck", "0.1", "--lake", str(lake)]

    with standalone(tmp_path) as cluster:
        status, printed = sweep_losing_a_worker(cluster, tmp_path, bare_python, arguments, 12)
        assert cluster.facts()["aliveworkers"] == 1

    assert status == 1, printed
    assert " ".join(printed.split()).count(f"Executors run the {FORM} form") == 1
    check(tmp_path, paths, 40)
    failed = {line["seed"] for line in lines(tmp_path) if not line["is_ok"]}
    assert failed
    opened = Lake.open(str(lake))
    tables = [opened.read(part, ["seed"]) for part in opened.parts("rows")]
    assert {seed for table in tables for seed in table["seed"].to_pylist()} == failed


@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_two_thousand_seeds_lose_a_machine_and_no_result(tmp_path: Path, bare_python: Path) -> None:
    paths = [scenario(tmp_path, "calm"), scenario(tmp_path, "careless", 2)]
    arguments = [*paths, "--seeds", "0:1000", "--recheck", "0"]

    with standalone(tmp_path) as cluster:
        began = time.monotonic()
        status, printed = sweep_losing_a_worker(cluster, tmp_path, bare_python, arguments, 1000)
        seconds = time.monotonic() - began
    sys.stdout.write(f"\n2,000 seeds in {seconds:.0f} s, a worker killed half-way\n{printed}")

    assert status == 1, printed
    check(tmp_path, paths, 1000)
