"""Checks in advance whether the system grants the process more memory.

If `ulimit -v` or the machine's limit of committed memory is too low for `maxmemory`, an allocation
could fail in the middle of a command, which would leave it half done. So the node requests memory
in advance. While the system refuses it, commands that add jobs receive OOM, and the remaining
memory is for acknowledgements and deliveries.
"""

from typing import Final

from disque_trio.ports import Host
from disque_trio.statemachine.base import Millis, Now
from disque_trio.statemachine.pressure import refuse_memory
from disque_trio.statemachine.state import NodeState

AHEAD_BYTES: Final = 16 << 20
"""More than the memory of a batch of requests, with replies and journal records."""
AHEAD_SHARE: Final = 8
"""An additional 1/8 of the size of all jobs: the memory of their table when it doubles."""
STEP_BYTES: Final = 1 << 20
"""The growth of jobs, in bytes, after which the check is repeated."""
LOOK_EVERY: Final[Millis] = 100
"""The time after which the check is repeated, because other records use memory too."""


class MemoryProbe:
    """Checks whether the system grants more memory."""

    __slots__ = ("_host", "_state", "look_above", "look_at")

    def __init__(self, state: NodeState, host: Host) -> None:
        self._state = state
        self._host = host
        self.look_above = 0
        """`look` must be called when jobs and queues have more bytes than this."""
        self.look_at: Millis = 0
        """`look` must be called at this time."""

    def look(self, now: Now) -> bool:
        """Check whether the system grants more memory. Returns whether it has begun to refuse
        it."""
        memory = self._state.memory
        self.look_at = now.mono + LOOK_EVERY
        self.look_above = memory.held + STEP_BYTES
        was_refused = memory.is_refused
        is_refused = not self._host.has_room(AHEAD_BYTES + memory.held // AHEAD_SHARE)
        if is_refused != was_refused:
            refuse_memory(self._state, is_so=is_refused)
        return is_refused and not was_refused
