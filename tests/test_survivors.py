"""A run that leaves a process behind fails, and names it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.processes import START_S
from tests.survivors import MARK

ROOT = Path(__file__).parents[1]
CONFTEST = """
from tests import survivors
survivors.PATIENCE_S = 1.0

def pytest_configure(config):
    survivors.watch(config)
"""
LEAVES = """
import subprocess, sys

def test_it():
    # Through another one that ends at once: an orphan.
    code = "import pathlib, subprocess, sys; from subprocess import DEVNULL;"
    code += "child = subprocess.Popen([sys.executable, '-c', %r], stdout=DEVNULL, stderr=DEVNULL);"
    code += "pathlib.Path('pid').write_text(str(child.pid))"
    program = "import time; time.sleep(1000)  # left behind"
    subprocess.run([sys.executable, "-c", code % program], check=True)
"""
LEAVES_NOTHING = """
import subprocess, sys

def test_it():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.2)"])
"""


def commands_with(text: str, pid: int) -> str:
    """The command line of a process that still runs; one that has ended has none."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
    return command if text in command else ""


def run(directory: Path, test: str, *options: str) -> tuple[int, str]:
    (directory / "conftest.py").write_text(CONFTEST)
    (directory / "test_it.py").write_text(test)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop(MARK, None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "test_it.py"],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=START_S,
    )
    return done.returncode, done.stdout


@pytest.mark.sample(2)
@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_a_process_that_outlives_the_run_is_named_ended_and_a_failure(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    status, text = run(tmp_path, LEAVES, *options)

    pid = int((tmp_path / "pid").read_text())
    assert status == 1, text
    assert f"{pid}: {sys.executable} -c import time; time.sleep(1000)  # left behind" in text
    assert not commands_with("left behind", pid)


@pytest.mark.slow
def test_a_process_that_ends_by_itself_is_none(tmp_path: Path) -> None:
    status, text = run(tmp_path, LEAVES_NOTHING)

    assert status == 0, text
    assert "outlived" not in text
