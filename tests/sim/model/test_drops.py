"""A drop of each kind of message, in each engine."""

import attrs
import pytest

from disque_trio.sim.scenarios.plan import Add, Administrator, Consumer, Fault, Plan
from disque_trio.sim.scenarios.vocabulary import MESSAGES
from disque_trio.statemachine.base import LIMITS
from disque_trio.statemachine.messages import ALL_MESSAGES, name_of
from tests.sim.runs import FAST_DETECTION, SECOND, of, play

NODES = (1, 2, 3, 4)
END = 9 * SECOND


def _talkative() -> Plan:
    """All kinds of messages are sent."""
    adds = [
        Add(
            at=number * SECOND // 8,
            node=number % 3 + 1,
            producer=f"p{number % 3}",
            queue="k" if number % 4 == 0 else "qr"[number % 2],
            body=f"b{number}",
            replicate=2,
            retry_s=2,
            ttl_s=60,
            limit=3 if number % 5 else None,
            unique="key" if number % 4 == 0 else None,
            if_exists="replace" if number % 4 == 0 else None,
        )
        for number in range(60)
    ]
    ways = ("ackjob", "ackjob", "result", "nack", "nack-delay", "bury", "working")
    mix = tuple((way, 1.0) for way in (*ways, "fastack", "elsewhere", "none"))
    workers = [
        Consumer(
            name=f"c{node}", node=node, queues=("q", "r"), mix=mix, count=2, work=(5000, SECOND)
        )
        for node in NODES
    ]
    orders = (("purge", 1.0), ("purge-dead", 1.0), ("redrive", 3.0))
    operator = Administrator(name="a", every=(100_000, 300_000), queues=("q", "r"), mix=orders)
    faults = (
        Fault(kind="crash", at=3 * SECOND, hold=5 * SECOND, nodes=(4,)),
        Fault(kind="leave", at=5 * SECOND, hold=SECOND, nodes=(2,)),
        Fault(kind="forget", at=2 * SECOND, hold=SECOND, nodes=(3,)),
        Fault(kind="pause-queue", at=SECOND, hold=SECOND, nodes=(1,), queue="q", mode="bcast"),
    )
    return Plan(
        scenario="talkative",
        seed=1,
        nodes=len(NODES),
        adds=tuple(adds),
        consumers=tuple(workers),
        administrators=(operator,),
        faults=faults,
        config=FAST_DETECTION,
        knobs=(("watch_all", 3), ("watchers", 2)),
        chaos=END,
        drain=SECOND,
    )


ABOUT_LIMITS = {name_of(each) for each in ALL_MESSAGES if each.NEEDS == LIMITS}
"""Sent only where a queue has limits, which no plan sets."""


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", [name for name in MESSAGES if name not in ABOUT_LIMITS])
def test_a_drop_loses_all_messages_that_it_names(name: str) -> None:
    for seed in range(1, 9):
        plan = attrs.evolve(_talkative(), seed=seed)
        drop = Fault(kind="drop", nodes=NODES, mode=name)

        rows = play(attrs.evolve(plan, faults=(drop, *plan.faults)))

        sent = {row.ref for row in of(rows, "send", cause=name) if 0 < row.time < END}
        if sent:  # Few runs have a HOLDERS.
            break

    assert sent
    assert not sent & {row.ref for row in of(rows, "recv", cause=name)}
