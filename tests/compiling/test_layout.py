"""The lowered tree runs as it is: a simulated run of it is the same as one of the source."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from compiling.layout import ROOT, lay_out
from compiling.lower import PLAIN
from disque_trio.sim.engines.heap.run import simulate
from tests.sim.storm import storm

SCRIPT = f"""
import sys
from disque_trio.sim.engines.heap.run import simulate
from tests.sim.storm import storm
assert "{PLAIN}" in sys.modules
print(simulate(storm(3)).digest)
"""


@pytest.mark.slow
def test_a_run_of_the_lowered_tree_is_the_same_as_one_of_the_source(tmp_path: Path) -> None:
    paths = lay_out(tmp_path)

    told = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    ).stdout

    assert all(path.is_file() for path in paths)
    assert told.strip() == simulate(storm(3)).digest
