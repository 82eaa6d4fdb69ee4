"""The trace of a job that waits, for the tests of liveness."""

from disque_trio.sim.scenarios.plan import Expect
from tests.sim.checkers.trace import Trace


def waiting(
    *, consumers: tuple[str, ...] = ("n1",), expect: Expect | None = None, rejoins: bool = True
) -> Trace:
    """A job that nobody has delivered while there were faults; they end after 20 s."""
    trace = Trace(consumers=consumers, expect=expect)
    trace.add(0)
    trace.cut(1, ["n1"], ["n2", "n3"], until=20)
    trace.heal(20, rejoins=rejoins)
    return trace
