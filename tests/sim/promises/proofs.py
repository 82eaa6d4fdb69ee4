"""For each option, directive and setting that has a plan: what fails if it is ignored."""

from collections.abc import Callable
from functools import partial
from typing import Final

from disque_trio.sim.checkers.promises import DIRECTIVES, OPTIONS, WORKER, Judged, Row
from disque_trio.sim.checkers.verdict import Verdict
from disque_trio.sim.scenarios.plan import Plan
from tests.sim.promises import plans
from tests.sim.promises.ignoring import (
    ignoring,
    judged,
    judged_without_directive,
    judged_without_setting,
)

_FIELDS: Final = {"strict": "is_strict", "prefetch_window": "prefetch_window"}
"""By setting of a simulated consumer: that of the engine."""


def _without_option(command: str, option: str, plan: Plan) -> Verdict:
    return judged(plan, machine_factory=ignoring(command, option))


PROOFS: Final[dict[str, tuple[Row, Plan, Callable[[Plan], Verdict]]]] = {
    **{
        f"{command} {option}": (
            OPTIONS[command][option],
            plan,
            partial(_without_option, command, option),
        )
        for (command, option), plan in plans.OPTIONS.items()
    },
    **{
        name: (DIRECTIVES[name], plan, partial(judged_without_directive, name=name))
        for name, plan in plans.DIRECTIVES.items()
    },
    **{
        f"consumer {name}": (
            WORKER[_FIELDS[name]],
            plan,
            partial(judged_without_setting, name=name),
        )
        for name, plan in plans.SETTINGS.items()
    },
}


def failed(name: str) -> list[str]:
    """The properties of its row that fail if it is ignored, and not otherwise."""
    row, plan, ignore = PROOFS[name]
    assert isinstance(row, Judged)
    assert judged(plan).ok, "the intact node fails already"
    try:
        verdict = ignore(plan)
    except Exception:
        return ["S12"]
    found = dict.fromkeys(each.property for each in verdict.violations)
    return [each for each in found if each in row.properties]
