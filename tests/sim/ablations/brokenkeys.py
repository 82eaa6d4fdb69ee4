"""Nodes that are broken in how they keep keys unique, and the plans in which that shows.

As in `broken`, each function breaks one thing.
"""

import attrs

from disque_trio.sim.scenarios.plan import Add, ClockPlan, Expect, Fault, Latency, LinkPlan, Plan
from disque_trio.statemachine import (
    acks,
    claims,
    keyending,
    keyfacts,
    keyindex,
    keymeeting,
    keysuccession,
    replication,
)
from disque_trio.statemachine.base import ACTIVE, QUEUED, JobId
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.keyfacts import DONE_KEPT, HELD, IN_QUEUE, KeyFact
from disque_trio.statemachine.state import NodeState
from tests.sim.ablations.broken import Patch, nothing
from tests.sim.ablations.conditions import SECOND, jobs, plan, workers


def asking_nobody(patch: Patch) -> None:
    """An ADDJOB with UNIQUE asks no other node for its key."""
    patch.setattr(claims, "_awaited", lambda *_: [])


def not_waiting_for_others(patch: Patch) -> None:
    """An ADDJOB does not wait for another one that wants the key and waits for something itself."""
    patch.setattr(claims, "is_undecided", lambda _: False)


def not_asking_again(patch: Patch) -> None:
    """When an earlier ADDJOB of a node wants the key, that node is not asked again."""
    patch.setattr(claims, "_yield", nothing)


def ends_not_told(patch: Patch) -> None:
    """A node that is asked about a job does not say that the job has ended."""
    patch.setattr(keyindex, "_end_of", nothing)


def gone_told_as_acked(patch: Patch) -> None:
    """A node that only knows that a job is gone says that it is acknowledged."""
    end_of = keyindex._end_of

    def said(node: NodeState, job_id: JobId) -> KeyFact | None:
        fact = end_of(node, job_id)
        return None if fact is None else attrs.evolve(fact, state=DONE_KEPT)

    patch.setattr(keyindex, "_end_of", said)


def keys_not_kept(patch: Patch) -> None:
    """KEEP has no effect."""
    patch.setattr(keyindex, "end", nothing)


def keys_kept_for_ever(patch: Patch) -> None:
    """A node says of a job that it lives even if it has ended."""
    fact_of = keyindex.fact_of

    def said(node: NodeState, job: Job) -> KeyFact:
        return attrs.evolve(fact_of(node, job), word=HELD)

    patch.setattr(keyindex, "fact_of", said)
    ends_not_told(patch)


def keys_not_loaded(patch: Patch) -> None:
    """After a restart a node does not know the keys of the jobs in its journal."""
    hold, drop = keyindex.hold, keyindex.drop

    def held(node: NodeState, job: Job) -> None:
        if node.recovering is None:
            hold(node, job)

    def dropped(node: NodeState, job: Job, cause: Cause, *, is_alone: bool) -> None:
        if job in node.keys.index.get(keyindex.name_of(job) or (b"", b""), ()):
            drop(node, job, cause, is_alone=is_alone)

    patch.setattr(keyindex, "hold", held)
    patch.setattr(keyindex, "drop", dropped)


def not_meeting(patch: Patch) -> None:
    """Nodes ask nothing when the last one has returned."""
    patch.setattr(keymeeting, "begin", nothing)


def any_goes(patch: Patch) -> None:
    """A job goes if another one has its key, be it earlier or later: both may go."""
    patch.setattr(keymeeting, "_is_earlier", lambda fact, job: fact.id != job.id)


def the_earlier_goes(patch: Patch) -> None:
    """A job goes if a later one has its key."""
    is_earlier = keymeeting._is_earlier

    def later(fact: KeyFact, job: Job) -> bool:
        return fact.id != job.id and not is_earlier(fact, job)

    patch.setattr(keymeeting, "_is_earlier", later)


def following_at_once(patch: Patch) -> None:
    """A job that follows another one with its key is queued at once."""
    patch.setattr(keyindex, "is_held_back", lambda _: False)


def following_never(patch: Patch) -> None:
    """Nobody asks whether the earlier job has ended."""
    patch.setattr(keysuccession, "_is_wanted", nothing)


def one_node_asks(patch: Patch) -> None:
    """Only the node of its ADDJOB asks whether the earlier job has ended."""
    is_wanted = keysuccession._is_wanted

    def is_own(node: NodeState, job: Job) -> bool:
        return job.id[2:10] == node.cluster.myself.id[:8] and is_wanted(node, job)

    patch.setattr(keysuccession, "_is_wanted", is_own)


def many_wishes(patch: Patch) -> None:
    """An ADDJOB with IFEXISTS again does not see that a job waits for the end of the first."""
    patch.setattr(keyfacts, "awaits_turn", nothing)


def replacing_nothing(patch: Patch) -> None:
    """What is replaced does not end."""
    patch.setattr(keyending, "replace", nothing)


def replacing_first(patch: Patch) -> None:
    """What is replaced ends before the new job has its copies."""
    follow = replication.follow

    def ending(node: NodeState, job: Job, stamp: int, *, replaces: bool) -> None:
        follow(node, job, stamp, replaces=replaces)
        name = keyindex.name_of(job)
        for other in node.keys.index.get(name or (b"", b""), ()) if replaces else ():
            if other.state in (ACTIVE, QUEUED):
                acks.ack(node, other.id, Cause.REPLACED)

    patch.setattr(replication, "follow", ending)


def replacing_at_work(patch: Patch) -> None:
    """A job is replaced although a worker has it."""
    patch.setattr(keyindex, "was_given_out", lambda _: False)
    patch.setattr(keyending, "is_to_deliver", lambda *_: True)
    state_of = keyindex.state_of
    patch.setattr(keyindex, "state_of", lambda node, job: max(state_of(node, job), IN_QUEUE))


# Plans.


def keyed(seed: int) -> Plan:
    """Many ADDJOBs at once want one of three keys, over slow links; many acks come to a node that
    does not hold the job."""
    adds = jobs(600, every=SECOND // 40, replicate=2, keep_s=None)
    mix = (("ackjob", 1.0), ("elsewhere", 3.0))
    return plan(
        "keyed",
        seed,
        20,
        link=LinkPlan(latency=Latency(fast=(2_000, 60_000))),
        clocks=tuple(ClockPlan(wall_offset_ms=400 * number) for number in range(5)),
        adds=tuple(_with_key(add, number % 3) for number, add in enumerate(adds)),
        consumers=workers((1, 2, 3, 4, 5), mix=mix, work=(5_000, 60_000)),
    )


def acked_afar(seed: int) -> Plan:
    """The same with longer work, and with some slow messages: an ADDJOB may find a job of whose
    acknowledgement its holder has not heard."""
    made = keyed(seed)
    link = LinkPlan(latency=Latency(fast=(500, 2_000), slow=(50_000, 200_000), p_slow=0.1))
    mix = (("elsewhere", 1.0),)
    return attrs.evolve(
        made,
        link=link,
        adds=tuple(attrs.evolve(add, replicate=1) for add in made.adds),
        consumers=workers((1, 2, 3, 4, 5), mix=mix, work=(200_000, 400_000)),
    )


def keeping(seed: int) -> Plan:
    """The same, with KEEP."""
    made = keyed(seed)
    return attrs.evolve(made, adds=tuple(attrs.evolve(add, keep_s=2) for add in made.adds))


def followed(seed: int) -> Plan:
    """The same with slower workers; every second ADDJOB replaces, and every fourth one asks for one
    job more. Some jobs have a delay."""
    made = keyed(seed)
    ways = ("again", "replace", None, "replace")
    adds = (
        attrs.evolve(add, if_exists=ways[number % 4], delay_s=1 if number % 5 == 1 else 0)
        for number, add in enumerate(made.adds)
    )
    consumers = workers((1, 2, 3, 4, 5), work=(100_000, 400_000))
    return attrs.evolve(made, adds=tuple(adds), consumers=consumers)


def debounced(seed: int) -> Plan:
    """Each job has a delay of six seconds, and is replaced in the first of them."""
    adds = jobs(40, every=SECOND // 4, replicate=2)
    return plan(
        "debounced",
        seed,
        20,
        adds=tuple(
            attrs.evolve(_with_key(add, number // 2), if_exists="replace", delay_s=6)
            for number, add in enumerate(adds)
        ),
        consumers=workers((1, 2, 3, 4, 5)),
    )


def orphaned(seed: int) -> Plan:
    """Producers at node 1 ask for one more job while workers have the first ones, and it ends.

    The work takes longer than the lease, so jobs come twice.
    """
    adds = [
        attrs.evolve(
            _with_key(add, number // 2),
            at=SECOND + number % 2 * 3 * SECOND,
            node=2 - number % 2,
            if_exists="again",
            delay_s=0,
        )
        for number, add in enumerate(jobs(20, every=SECOND // 10, replicate=3, retry_s=4))
    ]
    return plan(
        "orphaned",
        seed,
        20,
        adds=tuple(adds),
        consumers=workers((2, 3, 4, 5), work=(6 * SECOND, 8 * SECOND), mix=(("working", 1.0),)),
        faults=(Fault(kind="crash", at=5 * SECOND, hold=2 * SECOND, nodes=(1,), mode="kill"),),
        drain=120 * SECOND,
        expect=Expect(duplicates=("D1",)),
    )


def failing(seed: int) -> Plan:
    """Eight ADDJOBs in a row want the same key, and the first of them often fails for want of time,
    so that its copies are removed again."""
    made = keeping(seed)
    adds = [_with_key(add, number // 8) for number, add in enumerate(made.adds)]
    hasty = [attrs.evolve(add, timeout_ms=120, replicate=3) for add in adds]
    chosen = (hasty[n] if n % 8 < 4 else adds[n] for n in range(len(adds)))
    return attrs.evolve(made, adds=tuple(chosen))


def restarted(seed: int) -> Plan:
    """All nodes are killed and come back with their journals, and nobody takes the jobs."""
    adds = [add for add in jobs(60, every=SECOND, replicate=2) if not 1 <= add.at // SECOND < 40]
    kills = tuple(
        Fault(kind="crash", at=5 * SECOND, hold=SECOND, nodes=(node,), mode="kill")
        for node in range(1, 6)
    )
    return plan(
        "restarted",
        seed,
        65,
        config=(("cluster-node-timeout", "1000"), ("appendonly", "yes"), ("appendfsync", "always")),
        adds=tuple(_with_key(add, 0) for add in adds),
        faults=kills,
        drain=SECOND,
    )


def parted(seed: int) -> Plan:
    """Two sides of a cut add jobs with the same keys, and workers come long after it."""
    adds = [
        attrs.evolve(_with_key(add, number // 4), at=5 * SECOND + number * SECOND // 10)
        for number, add in enumerate(jobs(40, nodes=(1, 4, 2, 5), replicate=2, retry_s=300))
    ]
    late = tuple(attrs.evolve(each, start=50 * SECOND) for each in workers((1, 2)))
    cut = Fault(kind="partition", at=SECOND, hold=10 * SECOND, groups=((1, 2, 3), (4, 5)))
    return plan(
        "parted",
        seed,
        60,
        link=LinkPlan(latency=Latency(fast=(20_000, 200_000))),
        adds=tuple(adds),
        consumers=late,
        faults=(cut,),
    )


def _with_key(add: Add, number: int) -> Add:
    return attrs.evolve(add, unique=f"k{number}", timeout_ms=5000)
