"""The plans in which mutants are caught."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Plan
from tests.sim.mutants.plans import (
    attended,
    conditions,
    keys,
    letters,
    limited,
    others,
    promised,
    upkeep,
)

_ALONE: Final = {"keys": keys, "letters": letters, "limited": limited}


def called(name: str) -> Callable[[int], Plan]:
    """By seed: a function of these modules (those of `_ALONE` are `keys.parted`), a scenario, or a
    plan of `scenarios/pins`; `backoff:26` begins with seed 26. Raises OSError."""
    if (here := _here(name)) is not None:
        return here
    name, _, first = name.partition(":")
    if (pinned := pin(name)).exists():
        return lambda _seed: plan_file.load(pinned)
    scenario = load(conditions.SCENARIOS / f"{name}.toml")
    return lambda seed: expand(scenario, int(first or 0) + seed)


def pin(name: str) -> Path:
    """Where the plan is if the name is a pin's."""
    return conditions.SCENARIOS / "pins" / f"{name}.json"


def is_here(name: str) -> bool:
    """Is it one of these functions?"""
    return _here(name) is not None


def _here(name: str) -> Callable[[int], Plan] | None:
    module, _, function = name.rpartition(".")
    alike = [others, conditions, upkeep, attended, promised]
    modules = [_ALONE[module]] if module else alike
    found = (getattr(each, function, None) for each in modules)
    return next((each for each in found if _is_plan(each)), None)


def _is_plan(found: object) -> bool:
    """Other functions there make parts of plans."""
    return getattr(found, "__annotations__", None) == {"seed": int, "return": Plan}
