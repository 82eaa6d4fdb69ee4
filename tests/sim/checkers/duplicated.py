"""What the tests of duplicates begin with."""

from tests.sim.checkers.scenario import Tale


def leased(tale: Tale | None = None) -> Tale:
    """A job on three nodes that n1 has delivered, and the others know it. RETRY is 10 s."""
    tale = tale or Tale()
    tale.add(0)
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    return tale


def acknowledged(tale: Tale | None = None, *, told: tuple[str, ...] = ()) -> Tale:
    """The same job, acknowledged at n1 after 5 s."""
    tale = leased(tale)
    tale.ack(5)
    for node in told:
        tale.told_of_ack(5.001, "n1", node)
    return tale


def again(tale: Tale, time: float, node: str = "n2", cause: str = "retry") -> None:
    """A node queues the job again, and delivers it."""
    tale.requeue(time, node, cause)
    tale.serve(time, node, "c2")


def behind_a_cut() -> Tale:
    tale = Tale()
    tale.add(0)
    tale.cut(1, ["n1"], ["n2", "n3"], until=30)
    tale.serve(5)
    tale.tell(5, "working", "n1", "n2", lost=13)
    tale.tell(5, "working", "n1", "n3", lost=13)
    return tale
