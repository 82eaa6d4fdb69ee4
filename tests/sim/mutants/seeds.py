"""Seeds of plans, run and judged in this process until one is not passed."""

import gc
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, Final

from disque_trio.cli.sim.execution import OverdueError, Result, execute
from disque_trio.cli.sim.pool import cycles_collected_between_seeds
from disque_trio.sim.scenarios.plan import Plan
from tests.sim.ablations import conditions, upkeep
from tests.sim.mutants import plans

LIMIT_S: Final = 10
"""Of processor time: who takes longer hangs."""


def run(names: Sequence[str], first: int, last: int) -> Iterator[dict[str, Any]]:
    """The plan, the seed, what was found, and the processor time, of each run."""
    drawn = [_plan_called(name) for name in names]
    signal.signal(signal.SIGVTALRM, _give_up)
    with cycles_collected_between_seeds():
        for turn in range(first, last):
            seed, at = divmod(turn, len(names))
            began = time.process_time()
            result = _judged(drawn[at](seed))
            gc.collect()
            found = {each.property: each.text for each in reversed(result.findings)}
            spent = round(time.process_time() - began, 3)
            yield {"turn": turn, "plan": names[at], "seed": seed, "found": found, "cpu": spent}
            if found:
                return


def _plan_called(name: str) -> Callable[[int], Plan]:
    ours = (getattr(each, name, None) for each in (plans, conditions, upkeep))
    plan: Callable[[int], Plan] = next(filter(None, ours), None) or conditions.shipped(name)
    return plan


def _judged(plan: Plan) -> Result:
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    try:
        return execute(plan).result
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _give_up(_signal: int, _frame: FrameType | None) -> None:
    raise OverdueError(f"not finished after {LIMIT_S} s")
