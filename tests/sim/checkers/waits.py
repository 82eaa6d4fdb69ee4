"""A tale of a job that waits, for the checks of liveness."""

from disque_trio.sim.scenarios.plan import Expect
from tests.sim.checkers.scenario import Tale


def waiting(
    *, consumers: tuple[str, ...] = ("n1",), expect: Expect | None = None, rejoins: bool = True
) -> Tale:
    """A job that nobody has delivered while there were faults; they end after 20 s."""
    tale = Tale(consumers=consumers, expect=expect)
    tale.add(0)
    tale.cut(1, ["n1"], ["n2", "n3"], until=20)
    tale.heal(20, rejoins=rejoins)
    return tale
