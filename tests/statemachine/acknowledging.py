"""What the tests of acknowledgements begin with."""

from disque_trio.statemachine.messages import SetAck
from tests.rig import CALM, Rig, copy_of

GRAIN = 8


BY_UNKNOWN_NODE = b"D-eeeeeeee-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"


def rig_with_job(*holders: bytes, peers: int = 2, ours: bool = False) -> Rig:
    """This node and the others named hold JOB."""
    rig = Rig(peers=peers, config=CALM, ours=ours)
    rig.hold(copy_of(holders=holders))
    return rig


def setack_times(rig: Rig, duration: int) -> list[int]:
    """After how many whole seconds SETACKs went out."""
    start = rig.now.mono
    times = []
    while rig.now.mono < start + duration:
        rig.advance(500)
        if any(isinstance(message, SetAck) for _, message in rig.sent()):
            times.append(round((rig.now.mono - start) / 1000))
    return times
