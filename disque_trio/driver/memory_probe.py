"""Tests whether the system would grant the process more memory, before commands need it.

Where `ulimit -v` or the machine's limit of committed memory is below what `maxmemory` allows, an
allocation fails in the middle of a command, which may leave anything half done. So the node asks
for room ahead: while the system refuses it, commands that add are answered OOM, and what is left is
for those that acknowledge and deliver.
"""

from typing import Final

from disque_trio.ports import Host
from disque_trio.statemachine.base import Millis, Now
from disque_trio.statemachine.pressure import refuse_memory
from disque_trio.statemachine.state import NodeState

AHEAD_BYTES: Final = 16 << 20
"""More than a batch of requests takes, with their replies and the journal's records."""
AHEAD_SHARE: Final = 8
"""And this part of the jobs: what their table takes when it doubles."""
STEP_BYTES: Final = 1 << 20
"""After so many more bytes of jobs it is looked again,"""
LOOK_EVERY: Final[Millis] = 100
"""and after this time, since there are other things than jobs."""


class MemoryProbe:
    """Asks the system ahead."""

    __slots__ = ("_host", "_state", "look_above", "look_at")

    def __init__(self, state: NodeState, host: Host) -> None:
        self._state = state
        self._host = host
        self.look_above = 0
        """`look` is to be called when jobs and queues have more bytes than this,"""
        self.look_at: Millis = 0
        """or at this moment."""

    def look(self, now: Now) -> bool:
        """Ask. Has it become so that the system refuses more?"""
        memory = self._state.memory
        self.look_at = now.mono + LOOK_EVERY
        self.look_above = memory.held + STEP_BYTES
        was_refused = memory.is_refused
        is_refused = not self._host.has_room(AHEAD_BYTES + memory.held // AHEAD_SHARE)
        if is_refused != was_refused:
            refuse_memory(self._state, is_so=is_refused)
        return is_refused and not was_refused
