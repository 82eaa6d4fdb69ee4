"""Reads the files that commands are given: scenarios and plans."""

import hashlib
import re
from pathlib import Path

import attrs

from disque_trio.cli.frame import cannot_write
from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import ScenarioError, load
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.scenarios.plan_file import PlanError
from disque_trio.sim.scenarios.scenario import Scenario
from disque_trio.terminal.options import UsageError

TRACES = (".jsonl", ".arrow", ".parquet")
_TRACE = re.compile(r".*(\.jsonl(\.[0-9]+)?|\.arrow|\.parquet)", re.DOTALL)


def is_trace(path: str) -> bool:
    """Is it named like a trace, which a node may have rotated?"""
    return _TRACE.fullmatch(path) is not None


def scenario_from(path: str) -> Scenario:
    """The scenario in a file."""
    if not path.endswith(".toml"):
        raise UsageError(f"{path} is not a scenario: its name does not end in .toml")
    try:
        return load(path)
    except ScenarioError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None


def plan_from(path: str, seed: int | None) -> Plan:
    """The plan in a file, or the plan of a scenario for the seed."""
    if path.endswith(".toml"):
        return expand(scenario_from(path), seed or 0)
    if seed is not None:
        raise UsageError(f"{path} has its own seed: omit --seed")
    if not path.endswith(".json"):
        raise UsageError(f"{path} is neither a scenario (.toml) nor a plan (.json)")
    try:
        return plan_file.load(path)
    except PlanError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None


def check_engine(path: str, engine: str) -> None:
    """A scenario says in which engines it makes sense."""
    if path.endswith(".toml"):
        engines = scenario_from(path).engines
        if engine not in engines:
            raise UsageError(
                f"{path} cannot run in the {engine} engine, only in {', '.join(engines)}"
            )


def replay_command(path: str, plan: Plan, engine: str) -> str:
    """The command that runs it again."""
    seed = f" --seed {plan.seed}" if path.endswith(".toml") else ""
    other = "" if engine == "heap" else f" --engine {engine}"
    return f"disque-trio sim run {path}{seed}{other}"


def write_text(path: str, text: str) -> None:
    """Write a file."""
    try:
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise cannot_write(path, error) from None


def check_writable(path: str | None) -> None:
    """Raise `UsageError` before the run instead of minutes later, after it."""
    if path is None:
        return
    file = Path(path)
    existed = file.exists()
    try:
        with file.open("ab"):
            pass
    except OSError as error:
        raise cannot_write(path, error) from None
    if not existed:
        file.unlink()


def code_digest() -> str:
    """A digest of the package's source: results from other code do not count."""
    package = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def scenario_digest(scenario: Scenario) -> str:
    """A digest of everything that a scenario says, its bases included."""
    return hashlib.sha256(repr(attrs.asdict(scenario)).encode()).hexdigest()[:16]
