"""Seeds run on Spark: the tasks of a sweep in pieces of about ten seconds each."""

import socket
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Final

from disque_trio.cli.sim.cutting import PIECE_S, Cutter, Outcome, Piece
from disque_trio.cli.sim.pool import Done, Task, cycles_collected_between_seeds, run_seeds
from disque_trio.pipeline import shipping
from disque_trio.pipeline.errors import PipelineError
from disque_trio.pipeline.fanout import Fanout
from disque_trio.sim.scenarios.scenario import Scenario
from disque_trio.terminal.options import UsageError

TOO_LONG_S: Final = 2 * PIECE_S
"""After this time a piece begins no further seed: who knows how long the others would wait."""
_MEMORY: Final = "1g"
"""Of the driver, which only forwards results."""

_FORMS: Final = {
    "compiled": "Executors run the compiled form.",
    "pure": "Executors run the pure form; the compiled one takes less than half of the time.",
}


def run_all(
    tasks: Iterable[Task],
    scenarios: Mapping[str, Scenario],
    master: str,
    settings: Mapping[str, str],
    ready: Callable[[int], None],
    say: Callable[[str], None],
) -> Generator[Done, None, None]:
    """The tasks' results in the order in which they are finished. Closing ends Spark.

    `ready` is called with the number of processors as soon as Spark runs, `say` with a line that
    people should see.
    """
    with shipping.running(
        master, app="disque-trio sweep", memory=_MEMORY, settings=settings
    ) as spark:
        fanout = Fanout(spark)
        ready(fanout.processors)
        cutter = Cutter(tasks, scenarios, lambda: fanout.processors)
        outcomes = fanout.run(run_piece, cutter)
        forms = set[str]()
        try:
            for outcome in outcomes:
                if outcome.form not in forms:
                    forms.add(outcome.form)
                    say(_FORMS[outcome.form])
                if outcome.error:
                    raise UsageError(f"an executor on {outcome.host} says: {outcome.error}")
                cutter.learn(outcome)
                yield from outcome.done
        finally:
            outcomes.close()


def run_piece(piece: Piece) -> Outcome:
    """On an executor."""
    began = time.monotonic()
    path = piece.tasks[0].path
    try:
        with cycles_collected_between_seeds():
            done = run_seeds(piece.tasks, piece.scenario, str(piece.number), TOO_LONG_S)
    except (UsageError, PipelineError) as error:
        # Spark would retry an exception, and report it with a page of Java.
        return Outcome(path, (), 0.0, host=socket.gethostname(), error=str(error))
    left = piece.tasks[len(done) :]
    return Outcome(path, tuple(done), time.monotonic() - began, left)
