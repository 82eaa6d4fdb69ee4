"""Seeds of plans, run and judged in this process."""

import gc
import signal
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from types import FrameType
from typing import Any, Final

from disque_trio.cli.sim.execution import OverdueError, Run, execute
from disque_trio.cli.sim.pool import cycles_collected_between_seeds
from disque_trio.sim.checkers.verdict import Verdict
from disque_trio.sim.scenarios.plan import Plan
from tests.sim.mutants.mutant import LIMIT_S
from tests.sim.mutants.plans import called

FIGURES: Final[dict[str, Callable[[Verdict], float]]] = {
    "adds that fail": lambda v: v.marks["add.refused"] + v.marks["add.unknown"],
    "duplicates by races": lambda v: v.duplicates.get("D5", 0),
    "how long acknowledged jobs stay": lambda v: v.metrics.collection.p99,
    "deliveries of jobs whose ADDJOB failed": lambda v: v.metrics.recovered,
    "messages for each job": lambda v: v.metrics.messages_per_job,
}
"""What a mutant may cost that breaks no promise."""


def run(
    names: Sequence[str],
    turns: Iterable[int],
    engine: str = "heap",
    limit: float = LIMIT_S,
    goes_on: Container[int] = (),
    *,
    stops: bool = False,
) -> Iterator[dict[str, Any]]:
    """The plan, the seed, what was found, and the processor time, of each turn; the plans take
    turns. Ends when something is found, except in the turns that go on: the intact node fails
    there."""
    drawn = [called(name) for name in names]
    with cycles_collected_between_seeds():
        for turn in turns:
            seed, at = divmod(turn, len(names))
            began = time.process_time()
            found = findings(judged(drawn[at](seed), engine, limit, stops=stops))
            gc.collect()
            spent = round(time.process_time() - began, 3)
            yield {"turn": turn, "plan": names[at], "seed": seed, "found": found, "cpu": spent}
            if found and turn not in goes_on:
                return


def findings(run: Run) -> dict[str, str]:
    """By property: the first violation."""
    return {each.property: each.text for each in reversed(run.result.findings)}


def judged(plan: Plan, engine: str = "heap", limit: float = LIMIT_S, *, stops: bool = False) -> Run:
    """The run and its verdict. One that takes longer than the limit is ended; with `stops` it ends
    at the first violation."""
    before = signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        return execute(plan, engine, stops=stops)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def figure(mutant_costs: str, names: Sequence[str], seeds: int) -> float:
    """The sum of this figure over the first seeds of the plan."""
    verdicts = [judged(called(names[0])(seed)).verdict for seed in range(seeds)]
    return sum(FIGURES[mutant_costs](verdict) for verdict in verdicts if verdict is not None)


def _give_up(_signal: int, _frame: FrameType | None) -> None:
    raise OverdueError("not finished within its limit of processor time")
