"""Rigs that are short of memory."""

from disque_trio.statemachine import pressure
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.pressure import level
from tests.rig import Rig

MB = 1_000_000


def set_level(rig: Rig, wanted: int, *, room: int = 0) -> None:
    """Let what is used now be just that much: 50, 80 or 97 % of the limit, and `room` bytes."""
    pressure.review(rig.node)
    used = pressure.used(rig.node) - rig.node.endings.weight + room
    limit = used * 100 // (50, 80, 97)[wanted]
    rig.request("CONFIG", "SET", "maxmemory", limit)
    rig.replies()


def squeezed(wanted: int, peers: int = 0, config: Config | None = None) -> Rig:
    """A node with one large job, and as short of memory as that."""
    rig = Rig(peers=peers, config=config)
    rig.add("REPLICATE", 1, queue="large", body="b" * MB)
    set_level(rig, wanted)
    assert level(rig.node) == wanted
    return rig
