"""The entries of SLOWLOG: commands that took long (original 2.14). Written by
`commands.slowlog`."""

from collections import deque

import attrs


@attrs.define
class SlowEntry:
    """One slow command: when (Unix seconds), how long (microseconds), its arguments cut short."""

    id: int
    time_s: int
    usec: int
    args: list[bytes]


@attrs.define
class Slowlog:
    """Newest first."""

    entries: deque[SlowEntry] = attrs.Factory(deque)
    next_id: int = 0
