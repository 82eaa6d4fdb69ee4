"""Plans of jobs that die, and of operators who redrive them."""

from typing import Any

import attrs

from disque_trio.sim.scenarios.plan import Administrator, Consumer, Expect, Fault, Plan
from tests.sim.mutants.plans.conditions import SECOND, TROUBLED, jobs, plan, workers

_KINDS = (("redrive", 2.0), ("purge-dead", 0.5), ("wait", 2.0))


def _administrators(every: int = SECOND) -> tuple[Administrator, ...]:
    return tuple(
        Administrator(name=f"a{number}", every=(every // 4, every), queues=("q",), mix=_KINDS)
        for number in (1, 2)
    )


def _burying(**rest: Any) -> tuple[Consumer, ...]:
    mix = (("bury", 1.0), ("nack", 2.0), ("none", 2.0), ("ackjob", 1.0))
    return workers((1, 2, 3, 4, 5), mix=mix, work=(5_000, 200_000), **rest)


def letters(seed: int) -> Plan:
    """Jobs with limits, workers that bury them or forget them, operators: nothing goes wrong."""
    return plan(
        "letters",
        seed,
        25,
        adds=jobs(60, limit=3, retry_s=2),
        consumers=_burying(),
        administrators=_administrators(),
        expect=Expect(duplicates=("D0", "D1", "D5")),
    )


def cut_letters(seed: int) -> Plan:
    """The same, and again and again a node is cut off."""
    cuts = tuple(
        Fault(
            kind="partition",
            at=(4 + 6 * number) * SECOND,
            hold=3 * SECOND,
            groups=((1 + number % 5,), tuple(n for n in range(1, 6) if n != 1 + number % 5)),
        )
        for number in range(4)
    )
    return attrs.evolve(
        letters(seed), scenario="cut-letters", faults=cuts, expect=Expect(duplicates=TROUBLED)
    )


def awaited_letters(seed: int) -> Plan:
    """Workers bury what they get, and clients wait for the ends of jobs."""
    waiting = tuple(
        Administrator(
            name=f"a{number}",
            every=(SECOND // 20, SECOND // 5),
            queues=("q",),
            mix=(("wait", 1.0),),
        )
        for number in range(1, 4)
    )
    return plan(
        "awaited-letters",
        seed,
        10,
        adds=jobs(60, every=SECOND // 10),
        consumers=workers((1, 2), mix=(("bury", 1.0),), work=(SECOND // 5, SECOND // 2)),
        administrators=waiting,
    )


def lost_letters(seed: int) -> Plan:
    """Nobody redrives. Nodes are lost for good, and their copies are made again."""
    gone = tuple(
        Fault(kind="remove", at=(3 * number - 2) * SECOND, nodes=(number,)) for number in (4, 5)
    )
    return plan(
        "lost-letters",
        seed,
        25,
        config=(("cluster-node-timeout", "1000"), ("replica-repair-after", "2")),
        adds=jobs(60, limit=1, retry_s=2, nodes=(1, 2, 3)),
        consumers=workers((1, 2, 3), mix=(("bury", 1.0),), work=(5_000, 50_000)),
        faults=gone,
        drain=60 * SECOND,
        expect=Expect(duplicates=TROUBLED),
    )


def written_letters(seed: int) -> Plan:
    """Nodes are killed, and come back with their journals."""
    kills = tuple(
        Fault(kind="crash", at=(8 + 3 * number) * SECOND, hold=SECOND, nodes=(number,), mode="kill")
        for number in range(1, 6)
    )
    return attrs.evolve(
        letters(seed),
        scenario="written-letters",
        config=(
            ("cluster-node-timeout", "1000"),
            ("appendonly", "yes"),
            ("appendfsync", "always"),
        ),
        faults=kills,
        expect=Expect(duplicates=(*TROUBLED, "D8")),
    )


def cut_off(seed: int) -> Plan:
    """A node is cut off with the rest of its queue, and comes back when the jobs are dead."""
    cut = Fault(kind="partition", at=12 * SECOND, hold=13 * SECOND, groups=((5,), (1, 2, 3, 4)))
    mix = (("bury", 1.0), ("none", 3.0))
    return plan(
        "cut-off",
        seed,
        25,
        adds=jobs(60, limit=2, retry_s=3),
        consumers=workers((1, 2, 3, 4), mix=mix, work=(5_000, 20_000), stop=20 * SECOND),
        faults=(cut,),
        expect=Expect(duplicates=TROUBLED),
    )
