"""The resident size: a second bound beside the account, measured by the driver (docs/memory.md).

What jobs leave in Python's arenas and in the holes of the heap stays with the process, and only
jobs like them can use it. The account does not know that; the resident size does. A measurement
says how many resident bytes are not accounted for, the surplus, and until the next one `pressure`
lets the account grow no further than the surplus leaves room for.

A node whose resident size has reached the bound though its account has not may still have room: in
the holes. It finds out by a trial, a few more jobs. If the resident size grows by them, the next
trial comes later.

Owns `Memory.surplus`, `trial`, `trial_at` and `trial_pause`.
"""

from typing import Final

from disque_trio.statemachine import pressure
from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.state import NodeState

TRIAL_PERCENT: Final = 1
"""Of `maxmemory`: what may be added in a trial."""
TRIAL_BELOW_PERCENT: Final = 114
"""There are no trials if the resident size is more than this percentage of `maxmemory`."""
LEAST_PAUSE: Final[Millis] = 1000
MOST_PAUSE: Final[Millis] = 600_000


def measured(node: NodeState, resident: int) -> None:
    """The process takes so many bytes of memory now."""
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
    """Judge the trial that runs, and begin the next when it is time. Returns how many bytes may be
    in use by its end; 0 without a trial."""
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
