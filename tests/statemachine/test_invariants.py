from collections.abc import Callable

import pytest

from disque_trio.statemachine.base import ACTIVE, BCAST_QUEUED, PFAIL, QUEUED_ONCE
from disque_trio.statemachine.client import Blocked
from disque_trio.statemachine.invariants import check
from tests.rig import JOB, ME, N2, UNKNOWN, Rig, copy_of


def sound() -> Rig:
    """A node with a bit of everything."""
    rig = Rig(peers=1)
    rig.hold(copy_of())
    rig.add("REPLICATE", 1)
    rig.add("REPLICATE", 1)
    rig.request("GETJOB", "TIMEOUT", 1000, "FROM", "r", client=rig.connect())
    rig.request("ADDJOB", "q", "b", 0, client=rig.connect())
    check(rig.node)
    return rig


def add_a_holder_twice(rig: Rig) -> None:
    rig.node.jobs[JOB].holders = (ME, ME)


def queue_without_an_entry(rig: Rig) -> None:
    rig.queue().peek(1)[0].in_line = False


def miscount_a_queue(rig: Rig) -> None:
    rig.queue().length += 1


def lose_a_timer(rig: Rig) -> None:
    rig.node.timers.disarm(rig.node.jobs[JOB])


def wake_at_another_time(rig: Rig) -> None:
    rig.node.jobs[JOB].requeue_at += 7


def never_queue_again(rig: Rig) -> None:
    job = rig.node.jobs[JOB]
    job.requeue_at = 0
    rig.node.timers.arm(job, job.expires)


def queue_twice(rig: Rig) -> None:
    job = rig.node.jobs[JOB]
    job.retry, job.flags = 0, BCAST_QUEUED | QUEUED_ONCE
    rig.node.timers.arm(job, job.requeue_at)


def halve_a_job(rig: Rig) -> None:
    rig.node.jobs[JOB].body = None


def make_a_live_dummy(rig: Rig) -> None:
    rig.node.jobs[JOB].queue = rig.node.jobs[JOB].body = None


def rename_a_job(rig: Rig) -> None:
    rig.node.jobs[JOB].id = JOB[:-1] + b"0"


def confirm_for_an_unknown_node(rig: Rig) -> None:
    rig.node.jobs[JOB].confirmed = (ME, UNKNOWN)


def rename_a_queue(rig: Rig) -> None:
    rig.queue().name = b"other"


def lose_a_queue(rig: Rig) -> None:
    del rig.node.queues[b"q"]


def activate_a_queued_job(rig: Rig) -> None:
    rig.queue().peek(1)[0].state = ACTIVE


def let_a_client_linger(rig: Rig) -> None:
    rig.node.clients[2].blocked = Blocked.NO


def forget_a_waiter(rig: Rig) -> None:
    rig.queue(b"r").waiting.clear()


def wait_for_nothing(rig: Rig) -> None:
    rig.node.clients[2].queues = ()


def lose_a_client(rig: Rig) -> None:
    del rig.node.clients[2]


def lose_a_deadline(rig: Rig) -> None:
    rig.node.timers.disarm(rig.node.clients[2])


def let_a_client_wait_beside_jobs(rig: Rig) -> None:
    client = rig.node.clients[2]
    client.queues = (b"q", b"r")
    rig.queue().waiting[client.id] = client


def forget_a_client_s_job(rig: Rig) -> None:
    rig.node.clients[3].pending_adds[0].job = None


def wait_beside_another_client(rig: Rig) -> None:
    rig.node.clients[3].pending_adds[0].client = rig.client.id


def forget_a_pending_add(rig: Rig) -> None:
    job = rig.node.clients[3].pending_adds[0].job
    assert job is not None
    del rig.node.adding[job.id]


def lose_the_moment_to_widen(rig: Rig) -> None:
    rig.node.timers.disarm(rig.node.clients[3])


def widen_too_late(rig: Rig) -> None:
    rig.node.clients[3].due += 1


def miscount_pending_adds(rig: Rig) -> None:
    rig.node.adding.popitem()


def misweigh_what_is_added(rig: Rig) -> None:
    rig.node.adding_bytes += 1


def leave_a_queue_unserved(rig: Rig) -> None:
    rig.node.ready[b"q"] = rig.queue()


def lose_oneself(rig: Rig) -> None:
    del rig.node.cluster.nodes[ME]


def rename_a_node(rig: Rig) -> None:
    rig.node.cluster.nodes[N2].id = ME


def lose_a_link(rig: Rig) -> None:
    rig.node.cluster.links[rig.node.cluster.nodes[N2].link].peer = None


def miscount_the_members(rig: Rig) -> None:
    rig.node.cluster.size += 1


def reach_oneself(rig: Rig) -> None:
    rig.node.cluster.reachable.append(rig.node.cluster.myself)


def reach_the_dead(rig: Rig) -> None:
    rig.node.cluster.nodes[N2].flags |= PFAIL


def forget_a_weight(rig: Rig) -> None:
    rig.node.memory.held -= 1


def evict_a_live_job(rig: Rig) -> None:
    rig.node.memory.evictable[JOB] = rig.node.jobs[JOB]


def evict_a_job_that_is_gone(rig: Rig) -> None:
    gone = rig.add("REPLICATE", 1)
    rig.request("DELJOB", gone.id)
    rig.node.memory.evictable[gone.id] = gone


def imagine_a_dummy(rig: Rig) -> None:
    rig.node.memory.dummies[JOB] = rig.node.jobs[JOB]


@pytest.mark.parametrize(
    "damage",
    [
        forget_a_weight,
        evict_a_live_job,
        evict_a_job_that_is_gone,
        imagine_a_dummy,
        add_a_holder_twice,
        queue_without_an_entry,
        miscount_a_queue,
        lose_a_timer,
        wake_at_another_time,
        never_queue_again,
        queue_twice,
        halve_a_job,
        make_a_live_dummy,
        rename_a_job,
        confirm_for_an_unknown_node,
        rename_a_queue,
        lose_a_queue,
        activate_a_queued_job,
        let_a_client_linger,
        forget_a_waiter,
        wait_for_nothing,
        lose_a_client,
        lose_a_deadline,
        let_a_client_wait_beside_jobs,
        forget_a_client_s_job,
        wait_beside_another_client,
        forget_a_pending_add,
        lose_the_moment_to_widen,
        widen_too_late,
        miscount_pending_adds,
        misweigh_what_is_added,
        leave_a_queue_unserved,
        lose_oneself,
        rename_a_node,
        lose_a_link,
        miscount_the_members,
        reach_oneself,
        reach_the_dead,
    ],
)
def test_damage_is_noticed(damage: Callable[[Rig], None]) -> None:
    rig = sound()

    damage(rig)

    with pytest.raises(AssertionError):
        check(rig.node)
