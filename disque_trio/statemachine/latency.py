"""The samples of LATENCY: the worst pause of each second, by event (original 2.14)."""

from collections import deque

import attrs


@attrs.define
class Samples:
    """Up to 160 (Unix seconds, milliseconds) pairs of one event, oldest first, and its maximum."""

    worst: int = 0
    series: deque[tuple[int, int]] = attrs.Factory(lambda: deque(maxlen=160))


@attrs.define
class LatencyMonitor:
    """Events by name."""

    events: dict[bytes, Samples] = attrs.Factory(dict)
