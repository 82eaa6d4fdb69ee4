"""What has a length is true if it is not empty, in both forms."""

from disque_trio.statemachine.base import Spilled
from disque_trio.statemachine.timers import Timed, Timers
from disque_trio.statemachine.tombstones import Tombstones
from tests.rig import JOB


def test_what_is_empty_is_false() -> None:
    timers, tombstones = Timers(), Tombstones()
    assert not timers
    assert not tombstones
    assert not Spilled(0)

    timers.arm(Timed(), 1000)
    tombstones.bury(JOB)

    assert timers
    assert tombstones
    assert Spilled(1)
