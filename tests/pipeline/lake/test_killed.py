"""Real processes that write into one lake, are killed, and leave it whole."""

import random
import subprocess
import sys
import time
from pathlib import Path

from disque_trio.pipeline.lake.store import Lake

WRITE: str = """
import sys
from disque_trio.pipeline.lake import shape
from disque_trio.pipeline.lake.store import Lake
from disque_trio.tracing.rows import Row

path, name = sys.argv[1:]
lake = Lake.open(path, create=True)
for number in range(100_000):
    run = f"{name}-{number}"
    row = shape.rows_table([Row(1, "hold", job="J")], run, 7)
    plan = shape.traces_table(None, run)
    lake.commit([lake.write("rows", "s", run, row), lake.write("traces", "s", run, plan)])
    print(run, flush=True)
"""


def runs(lake: Lake) -> tuple[set[str], set[str]]:
    """Those with rows, and those with a plan."""
    found = lake.snapshot()
    rows, traces = (
        {Path(part.path).stem.rpartition("-")[0] for part in found[name]}
        for name in ("rows", "traces")
    )
    return rows, traces


def test_what_was_committed_is_there_after_any_kill_and_nothing_by_halves(tmp_path: Path) -> None:
    path, said, random_ = str(tmp_path / "lake"), set[str](), random.Random(7)
    for turn in range(6):
        command = [sys.executable, "-c", WRITE, path]
        writers = [
            subprocess.Popen([*command, f"{turn}-{each}"], stdout=subprocess.PIPE, text=True)
            for each in range(2)
        ]
        for writer in writers:
            assert writer.stdout is not None
            said.add(writer.stdout.readline().strip())
        until = time.monotonic() + random_.random() / 2
        while time.monotonic() < until:
            rows, traces = runs(Lake.open(path))
            assert rows == traces >= said
        for writer in writers:
            writer.kill()
            said.update(writer.communicate()[0].split())

        rows, traces = runs(Lake.open(path))
        assert rows == traces >= said

    assert len(said) > 12
