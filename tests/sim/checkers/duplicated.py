"""What the tests of duplicates begin with."""

from tests.sim.checkers.trace import Trace


def leased(trace: Trace | None = None) -> Trace:
    """A job on three nodes that n1 has delivered, and the others know it. RETRY is 10 s."""
    trace = trace or Trace()
    trace.add(0)
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    return trace


def acknowledged(trace: Trace | None = None, *, told: tuple[str, ...] = ()) -> Trace:
    """The same job, acknowledged at n1 after 5 s."""
    trace = leased(trace)
    trace.ack(5)
    for node in told:
        trace.setack(5.001, "n1", node)
    return trace


def again(
    trace: Trace, time: float, node: str = "n2", cause: str = "retry", client: str = "c2"
) -> None:
    """A node queues the job again, and delivers it."""
    trace.requeue(time, node, cause)
    trace.serve(time, node, client)


def behind_a_cut() -> Trace:
    trace = Trace()
    trace.add(0)
    trace.cut(1, ["n1"], ["n2", "n3"], until=30)
    trace.serve(5)
    trace.send(5, "working", "n1", "n2", lost=13)
    trace.send(5, "working", "n1", "n3", lost=13)
    return trace
