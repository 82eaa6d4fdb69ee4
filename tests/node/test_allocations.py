"""Each allocation of a command fails in turn, in a process of its own.

A failing allocation is the whole process's: it would hit the threads of a test runner as well.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

CHECKS = Path(__file__).with_name("allocations.py")


@pytest.mark.pure
@pytest.mark.skipif(find_spec("_testcapi") is None, reason="this Python has no _testcapi")
def test_wherever_memory_ends_nothing_is_half_done() -> None:
    options = ("-q", "-n0", "-p", "no:cacheprovider", "--timeout=0")

    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, CHECKS],
        capture_output=True, text=True, timeout=300, check=False, cwd=CHECKS.parents[2],
    )  # fmt: skip

    assert run.returncode == 0, run.stdout[-4000:]
    assert " passed" in run.stdout
