"""Checks the cluster of a scenario as the simulator checks its own runs (docs/guarantees.md)."""

from typing import Final

import attrs

from disque_trio.sim.checkers.case import Violation
from disque_trio.sim.checkers.properties import PROPERTIES
from disque_trio.sim.checkers.verdict import Judge, judge
from disque_trio.sim.scenarios.plan import Expect, Plan
from disque_trio.sim.scenarios.vocabulary import DUPLICATE_CAUSES

_SHOWN: Final = 5


class GuaranteeError(AssertionError):
    """The nodes have violated a guarantee of docs/guarantees.md, which is a bug of disque-trio."""


def judge_of(plan: Plan) -> Judge:
    """The checkers for the rows of a scenario."""
    return judge(attrs.evolve(plan, expect=Expect(duplicates=DUPLICATE_CAUSES)))


def check(seen: Judge) -> None:
    """Check the scenario at its end. Raises `GuaranteeError`."""
    found = seen.finish().violations
    if not found:
        return
    raise GuaranteeError(
        "the nodes have not kept what they guarantee, whatever the app does. This is a defect of "
        "disque-trio: please report it with the seed.\n"
        + "\n".join(_line(each) for each in found[:_SHOWN])
    )


def _line(found: Violation) -> str:
    meaning = PROPERTIES.get(found.property, "every duplicate has a cause")
    where = f"{found.time / 1_000_000:10.3f} s  {found.node}"
    return f"{where}  {found.property} ({meaning}): {found.detail}, {found.job}"
