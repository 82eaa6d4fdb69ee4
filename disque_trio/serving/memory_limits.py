"""The default of `maxmemory`.

`maxmemory` bounds accounted bytes. The resident size is up to a quarter larger (docs/memory.md), so
three quarters of what the container or `ulimit` allows are safe. The memory of a machine is for
other programs as well: half of it.
"""

from typing import Final

from disque_trio.statemachine.config import Config
from disque_trio.statemachine.pressure import SAFE_PERCENT
from disque_trio.system import MemoryLimit, memory_limit

MOST: Final = Config().maxmemory
"""The default where there is enough memory."""
_HUNDRED: Final = 100
_PERCENT_OF_MACHINE: Final = 50
_UNIT: Final = 1 << 20


def default_maxmemory(limit: MemoryLimit | None = None) -> int:
    """What `maxmemory` is unless it is set; whole MiB."""
    limit = limit or memory_limit()
    if limit is None:
        return MOST
    percent = _PERCENT_OF_MACHINE if limit.source == "machine" else SAFE_PERCENT
    return max(min(MOST, limit.size // _HUNDRED * percent) // _UNIT, 1) * _UNIT
