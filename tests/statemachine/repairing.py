"""What the tests of repair begin with."""

import attrs

from disque_trio.statemachine import repair
from disque_trio.statemachine.base import JobId, Millis, NodeId
from disque_trio.statemachine.job import Job, make_id
from disque_trio.statemachine.messages import JobCopy, ReplJob
from tests.rig import JOB, N2, Rig, copy_of

SOON: Millis = 1100 + 2 * repair.RUN_EVERY
"""By then a heartbeat has found the loss, and a few jobs have been checked."""


def forget(rig: Rig, *names: NodeId) -> None:
    for name in names:
        rig.ask("CLUSTER", "FORGET", name)


def until_a_pass_begins(rig: Rig) -> None:
    while rig.node.repair.walk is None:
        rig.advance(repair.RUN_EVERY // 2)


def asked(rig: Rig) -> list[tuple[NodeId, JobCopy]]:
    """The nodes that were sent a copy and are to confirm it."""
    return [
        (to, message.copies[0])
        for to, message in rig.sent()
        if isinstance(message, ReplJob) and not message.no_reply
    ]


def under(rig: Rig) -> int:
    return rig.node.repair.under


def named(name: int) -> JobId:
    """One of many job ids."""
    return make_id(N2, name << 130 | name, 86_400, at_least_once=True)


def held(rig: Rig, holders: tuple[NodeId, ...], *, replicas: int = 2, name: int = 0) -> Job:
    """A job that this node holds with others; `name` chooses one of many."""
    job_id = named(name) if name else JOB
    return rig.hold(attrs.evolve(copy_of(job_id, holders=holders), replicas=replicas))
