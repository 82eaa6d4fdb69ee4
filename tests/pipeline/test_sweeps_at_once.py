"""Sweeps of the same seeds at the same time, most of which are killed: each seed is stored once."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from disque_trio.pipeline.lake.store import Lake
from tests.cluster.processes import eventually
from tests.pipeline.lake.store_server import object_store
from tests.pipeline.test_sweep_on_cluster import scenario

SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
"""After how many results whom is killed."""
SEEDS = int(os.environ.get("SEEDS", "120"))
HASTY = """
import sys
from disque_trio.__main__ import main
from disque_trio.cli.sim import lakestore
lakestore._PATIENCE_S = float(sys.argv[1])  # commit often, so that many commits are interrupted
sys.exit(main(["sim", "sweep", *sys.argv[2:]]))
"""


@pytest.fixture(params=["a folder", "an object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where the lake is."""
    if request.param == "a folder":
        yield str(tmp_path / "lake")
        return
    with object_store() as bucket:
        yield f"{bucket}/at-once"


def stored(lake: Lake, relation: str) -> list[int]:
    """The seeds of each row, in order."""
    found = [lake.read(part, ["seed"])["seed"].to_pylist() for part in lake.parts(relation)]
    return sorted(seed for some in found for seed in some)


def sweep(path: str, place: str, seeds: range, log: Path) -> "subprocess.Popen[bytes]":
    patience_s = "2" if "://" in place else "0.1"
    words = [patience_s, path, "--seeds", f"{seeds.start}:{seeds.stop}", "--lake", place]
    with open(log, "ab") as out:
        return subprocess.Popen(
            [sys.executable, "-c", HASTY, *words, "--trace-share", "1", "--jobs", "1"],
            stdout=out, stderr=out,
        )  # fmt: skip


def run(path: str, place: str, log: Path, count: int) -> list[int]:
    """That many sweeps at once; all but two are killed after some results. How many results there
    were at each kill."""
    rng = random.Random(SEED)
    lake = Lake.open(place, create=True)
    starts = [rng.randrange(SEEDS // 2) for _ in range(count)]
    running = [sweep(path, place, range(at, at + SEEDS // 2), log) for at in starts]
    kills: list[int] = []
    try:
        for each in running[2:]:
            # What they are in the midst of then is what is tried.
            wanted = len(stored(lake, "results")) + rng.randrange(1, 8)
            has_come = partial(has, lake, wanted, running)
            eventually(has_come, 600, "more results")
            time.sleep(rng.random() / 5)
            each.kill()
            kills.append(len(stored(lake, "results")))
        for each in running[:2]:
            assert each.wait(1200) == 0, log.read_text()
    finally:
        for each in running:
            each.kill()
            each.wait()
    return kills


def has(lake: Lake, wanted: int, running: list["subprocess.Popen[bytes]"]) -> bool:
    is_over = all(each.poll() is not None for each in running)
    return is_over or len(stored(lake, "results")) >= wanted


@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_each_seed_is_stored_once_whoever_is_killed(place: str, tmp_path: Path) -> None:
    path, log = scenario(tmp_path, "calm"), tmp_path / "log"
    kills = run(path, place, log, 10)
    assert sweep(path, place, range(SEEDS), log).wait(1200) == 0, log.read_text()

    lake = Lake.open(place)
    wanted = list(range(SEEDS))
    assert stored(lake, "results") == stored(lake, "traces") == wanted
    assert stored(lake, "verdicts") == wanted
    rows = [lake.read(part, ["run", "seq"]) for part in lake.parts("rows")]
    pairs = [
        pair for each in rows for pair in zip(*(c.to_pylist() for c in each.columns), strict=True)
    ]
    assert len(set(pairs)) == len(pairs) > SEEDS
    sys.stdout.write(
        f"\n{place}: SEED={SEED}, kills at {kills} results: {SEEDS} seeds and {len(pairs)} rows, "
        "each once\n"
    )
