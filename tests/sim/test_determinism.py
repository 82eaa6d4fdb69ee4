import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import disque_trio.sim
from disque_trio.sim.engines.heap.run import simulate
from tests.sim.storm import storm

ROOT = Path(__file__).parents[2]
SIM = Path(disque_trio.sim.__path__[0])
# The other engines, the checkers and the command line may use the real world.
PURE = [
    path.relative_to(SIM).with_suffix("").as_posix()
    for pattern in (
        "*.py", "model/*.py", "workload/*.py", "scenarios/*.py", "engines/events.py",
        "engines/heap/*.py",
    )
    for path in sorted(SIM.glob(pattern))
]  # fmt: skip
BANNED = {"time", "os", "trio", "logging", "uuid", "secrets", "threading", "asyncio", "datetime"}


def digest_elsewhere(seed: int, model: str, hash_seed: str) -> str:
    """What a fresh process says."""
    return subprocess.run(
        [sys.executable, "-m", "tests.sim.storm", str(seed), model],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    ).stdout


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "model"), [(1, "stream"), (2, "hostile")])
def test_fresh_processes_with_other_hash_seeds_play_the_same_run(seed: int, model: str) -> None:
    here = simulate(storm(seed, model=model)).digest

    assert digest_elsewhere(seed, model, "1") == here
    assert digest_elsewhere(seed, model, "4242") == here


@pytest.mark.slow
@pytest.mark.parametrize("name", ["group-limits", "everything", "unique-cuts"])
def test_a_scenario_has_one_digest_whatever_the_hash_seed(name: str) -> None:
    sweep = [sys.executable, "-m", "disque_trio", "sim", "run", f"scenarios/{name}.toml", "--json"]
    played = [
        json.loads(
            subprocess.run(
                sweep, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed},
                check=False, capture_output=True, timeout=300,
            ).stdout
        )
        for seed in ("1", "2")
    ]  # fmt: skip

    assert played[0]["digest"] == played[1]["digest"]


def test_two_runs_in_one_process_are_the_same() -> None:
    assert simulate(storm(5)) == simulate(storm(5))


def nodes_of(module: str) -> Iterator[ast.AST]:
    yield from ast.walk(ast.parse((SIM / f"{module}.py").read_text()))


@pytest.mark.parametrize("module", PURE)
def test_nothing_pure_reads_the_real_world(module: str) -> None:
    imported = set()
    for node in nodes_of(module):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])

    assert not imported & BANNED


@pytest.mark.parametrize("module", PURE)
def test_nothing_pure_draws_from_a_shared_stream_or_goes_by_hashes(module: str) -> None:
    for node in nodes_of(module):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                assert name not in {"id", "hash", "set", "frozenset"}, ast.unparse(node)
            case ast.Attribute(value=ast.Name(id="random"), attr=name):
                assert name == "Random", ast.unparse(node)
            case ast.SetComp():
                pytest.fail(ast.unparse(node))
