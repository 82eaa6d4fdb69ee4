"""Plans with administrators, and with consumers that are tied to their connections or are stopped
for a while."""

from disque_trio.sim.scenarios.plan import Administrator, Expect, Plan
from tests.sim.mutants.plans.conditions import SECOND, jobs, plan, workers


def awaited(seed: int) -> Plan:
    """Jobs without consumers, and clients that wait for their ends."""
    waiting = tuple(
        Administrator(
            name=f"a{number}",
            every=(SECOND // 10, SECOND // 2),
            queues=("q",),
            mix=(("wait", 1.0),),
        )
        for number in range(1, 5)
    )
    return plan("awaited", seed, 10, adds=jobs(20, ttl_s=4), consumers=(), administrators=waiting)


def purged(seed: int) -> Plan:
    """A queue with a backlog is purged while workers take from it."""
    purging = Administrator(
        name="a1", every=(2 * SECOND, 3 * SECOND), queues=("q",), mix=(("purge", 1.0),)
    )
    return plan(
        "purged",
        seed,
        10,
        adds=jobs(80, every=SECOND // 20, replicate=1),
        consumers=workers((1, 2), work=(SECOND // 20, SECOND // 5), mix=(("ackjob", 1.0),)),
        administrators=(purging,),
    )


def tied(seed: int) -> Plan:
    """Workers die with jobs that are tied to their connections."""
    mix = (("ackjob", 2.0), ("die", 1.0))
    return plan(
        "tied",
        seed,
        15,
        adds=jobs(40, retry_s=8),
        consumers=workers((1, 2, 3), meta=True, tied=True, mix=mix),
        expect=Expect(duplicates=("D0", "D1")),
    )


def stalled(seed: int) -> Plan:
    """The processes of engines are often stopped for longer than a lease."""
    stopping = workers(
        (1, 2, 3),
        kind="engine",
        count=2,
        prefetch=2,
        meta=True,
        work=(SECOND // 20, SECOND // 2),
        stall=(2 * SECOND, 5 * SECOND),
        mix=(("ackjob", 3.0), ("stall", 1.0)),
    )
    expect = Expect(duplicates=("D0", "D1", "D2", "D5"))
    return plan(
        "stalled",
        seed,
        20,
        adds=jobs(120, every=SECOND // 10),
        consumers=stopping,
        expect=expect,
    )
