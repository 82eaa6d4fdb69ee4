"""What the tests of requeue begin with."""

from disque_trio.statemachine.base import JobId
from tests.rig import CALM, JOB, ME, N2, N3, Rig, copy_of

GRAIN = 8


SPREAD = range(-250, 250)


I_WIN: JobId = b"D-bbbbbbbb-BBBBBBBBBBBBBBBBBBBBBBBB-05a1"


def holder_rig(*, retry: int = 60, delay: int = 0, job_id: JobId = JOB) -> Rig:
    """Three nodes hold a job that waits for its retry here."""
    rig = Rig(peers=2, config=CALM)
    rig.hold(copy_of(job_id, holders=(N2, N3, ME), retry=retry, delay=delay))
    return rig


def advance_to(rig: Rig, moment: int) -> None:
    rig.advance(moment - rig.now.mono)
