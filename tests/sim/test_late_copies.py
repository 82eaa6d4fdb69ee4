"""Copies that an ADDJOB with SYNC did not wait for come later, whatever happens to its node."""

import attrs
import pytest

from disque_trio.sim.scenarios.plan import Add, Fault, Plan
from disque_trio.tracing.rows import Row
from tests.sim.runs import FAST_DETECTION, SECOND, between, of, play

ADD = Add(
    at=3 * SECOND, node=1, producer="p1", queue="q", body="b", replicate=3, sync=2, retry_s=900,
)  # fmt: skip
DISK = (("appendonly", "yes"), ("appendfsync", "always"))


def cut(one: int, other: int, since: int, until: int) -> Fault:
    links = ((one, other), (other, one))
    return Fault(kind="cut", at=since * SECOND, hold=(until - since) * SECOND, links=links)


def played(
    *faults: Fault, nodes: int, config: tuple[tuple[str, str], ...], add: Add = ADD
) -> list[Row]:
    """One job."""
    return play(
        Plan(
            scenario="late copies",
            seed=1,
            nodes=nodes,
            adds=(add,),
            faults=faults,
            chaos=60 * SECOND,
            config=(*FAST_DETECTION, *config),
        )
    )


def holders(rows: list[Row]) -> set[str]:
    """Who has a copy when the chaos ends."""
    found: set[str] = set()
    for row in between(rows, 0, 60):
        if row.kind == "hold":
            found.add(row.node)
        elif row.kind in {"drop", "remove"}:
            found.discard(row.node)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("after", ["0", "600"])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_node_that_comes_later_gets_one(after: str, *, restarts: bool) -> None:
    """n3 is not there when the job is added, and comes after n1 has started anew."""
    faults = [Fault(kind="crash", at=2 * SECOND, hold=18 * SECOND, nodes=(3,))]
    if restarts:
        faults.append(Fault(kind="crash", at=6 * SECOND, hold=SECOND, nodes=(1,)))

    rows = played(*faults, nodes=3, config=(*DISK, ("replica-repair-after", after)))

    assert of(rows, "add.ok")
    assert holders(rows) == {"n1", "n2", "n3"}


@pytest.mark.sample(2)
@pytest.mark.parametrize("nodes", [3, 4])
def test_so_does_one_that_its_creator_could_not_reach_before_it_was_lost(nodes: int) -> None:
    """n1 sends n3 a copy that never comes, tells n2 of it, and is gone for good."""
    faults = (
        cut(1, 3, 2, 20),
        *[cut(1, 4, 2, 20) for _ in range(nodes - 3)],
        Fault(kind="remove", at=3 * SECOND + SECOND // 5, nodes=(1,)),
    )

    rows = played(*faults, nodes=nodes, config=(("replica-repair-after", "2"),))

    assert of(rows, "add.ok")
    assert holders(rows) == {f"n{number}" for number in range(2, nodes + 1)}


@pytest.mark.slow
def test_a_copy_that_never_came_is_not_counted_when_its_creator_is_lost() -> None:
    """n1 sends n3 a copy, and soon n2 another with a list of both, for it needs one of them."""
    faults = (
        Fault(kind="cut", at=3 * SECOND - 1000, hold=17 * SECOND, links=((1, 3), (3, 1))),
        Fault(kind="remove", at=4 * SECOND, nodes=(1,)),
    )
    rows = [
        played(
            *faults,
            nodes=3,
            config=(("replica-repair-after", "2"),),
            add=attrs.evolve(ADD, replicate=2, sync=None, queue=queue),
        )
        for queue in ("q", "r", "s")
    ]

    assert all(of(each, "add.ok") for each in rows)
    assert all(holders(each) == {"n2", "n3"} for each in rows)
