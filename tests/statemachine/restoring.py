"""What the tests of jobs that wait after a restart begin with."""

import attrs

from disque_trio.statemachine.base import ACTIVE, BCAST_QUEUED, BCAST_WILLQUEUE, QUEUED, JobId, Now
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.messages import JobCopy
from disque_trio.statemachine.records import LoadJob, Record
from tests.rig import ME, WALL, Rig, copy_of

_CONFIG = Config(appendonly=True, cluster_node_timeout=1_000_000_000, trace_sample=0)
_WAS_QUEUED = BCAST_WILLQUEUE | BCAST_QUEUED


def job_id(number: int) -> JobId:
    return b"D-aaaaaaaa-%024d-05a1" % number


def was_queued(
    number: int, *, holders: tuple[bytes, ...] = (ME,), retry: int = 60, queue: bytes = b"q"
) -> LoadJob:
    """A record of a job that waited in its queue when the node crashed."""
    return _record(copy_of(job_id(number), holders=holders, retry=retry, queue=queue))


def was_delayed(number: int, delay: int) -> LoadJob:
    copy = copy_of(job_id(number), holders=(ME,), delay=delay)
    return _record(attrs.evolve(copy, state=ACTIVE), BCAST_WILLQUEUE)


def _record(copy: JobCopy, flags: int = _WAS_QUEUED) -> LoadJob:
    state = ACTIVE if copy.state == ACTIVE else QUEUED
    return LoadJob(attrs.evolve(copy, state=state, flags=flags, etime=WALL // 1000 + 86_400))


def restarted(*records: Record, peers: int = 0, late: int = 0) -> Rig:
    """A node with this journal, `late` milliseconds after the jobs' creation."""
    rig = Rig(peers=peers, config=_CONFIG)
    rig.now = Now(rig.now.mono + late, WALL + late)
    rig.machine.load(records, rig.now)
    assert rig.machine.loaded(rig.now)
    rig.take()
    rig.outboxes.clear()
    return rig
