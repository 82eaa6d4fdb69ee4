"""The resident size: a second limit of memory besides the account, measured by the driver
(docs/memory.md).

Memory that dropped jobs leave in Python's arenas and in holes of the heap stays with the process,
and only similar jobs can reuse it. The account excludes it; the resident size includes it. A
measurement determines the surplus: resident bytes that are not accounted. Until the next one,
`pressure` limits the account to the room that the surplus leaves.

If only the resident size has reached its limit, there may still be room in the holes. A trial,
which admits a few more jobs, tests that. If the resident size grows by them, the next trial is
delayed.

Owns `Memory.surplus`, `trial`, `trial_at` and `trial_pause`.
"""

from typing import Final

from disque_trio.statemachine import pressure
from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.state import NodeState

TRIAL_PERCENT: Final = 1
"""The percentage of `maxmemory` that may be added in a trial."""
TRIAL_BELOW_PERCENT: Final = 114
"""There are no trials if the resident size is more than this percentage of `maxmemory`."""
LEAST_PAUSE: Final[Millis] = 1000
MOST_PAUSE: Final[Millis] = 600_000


def measured(node: NodeState, resident: int) -> None:
    """Handle a measurement of the resident size, in bytes."""
    memory = node.memory
    percent = node.config.maxmemory // 100
    used = pressure.weighed(node)
    surplus = resident - used
    bound = percent * pressure.HARD_RESIDENT_PERCENT
    if resident + percent * TRIAL_PERCENT <= bound:
        memory.trial, memory.trial_at, memory.trial_pause = None, 0, 0
    elif resident < percent * TRIAL_BELOW_PERCENT:
        most = _trial(node, resident, used, percent * TRIAL_PERCENT)
        surplus = min(surplus, bound - most)
    memory.surplus = surplus
    pressure.review(node)


def _trial(node: NodeState, resident: int, used: int, size: int) -> int:
    """Evaluate the running trial, and begin the next one if it is due. Returns how many bytes may
    be in use at its end; 0 without a trial."""
    memory = node.memory
    if memory.trial is not None and memory.trial[1] <= used:
        resident_before, used_before = memory.trial
        grown = used - used_before
        if grown < size // 2:
            return used_before + size
        memory.trial = None
        if resident - resident_before > grown // 2:
            memory.trial_pause = min(max(2 * memory.trial_pause, LEAST_PAUSE), MOST_PAUSE)
            memory.trial_at = node.mono + memory.trial_pause
        else:
            memory.trial_pause = 0
    if node.mono < memory.trial_at:
        return 0
    memory.trial = (resident, used)
    return used + size
