"""A9: each tick is added once."""

from typing import Final

from disque_trio.sim.scenarios.apps import Micros
from disque_trio.testing.apps.checkers.history import History

_BEFORE: Final[Micros] = 10_000_000


def check(history: History) -> None:
    """Check each tick whose job has run."""
    for (task, tick), ids in history.ticks.items():
        first, *others = sorted(ids.items(), key=lambda each: each[1])
        for id, at in others:
            if history.is_calm(first[1] - _BEFORE, at):
                text = f"a tick of {task} was added again: {tick}"
                history.violate("A9", text, at, id)
