"""Resolves conflicts between options: the more general option is adapted.

An option is set by a job or its task, or is a default of the app or of this library. If two options
conflict and one has precedence, the other is adapted: for example, a job's `ttl` lowers the default
`lease`. `Options` and `Definition` check conflicts between options of the same origin.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

from disque_trio.worker.policies import Policy

LEASE_S: Final = 300
TTL_S: Final = 7 * 24 * 3600
SHORTEST_LEASE_S: Final = 3
"""Leases vary by a quarter of a second, and are not renewed in their last half second."""
_RUNS_S: Final = 24 * 3600
"""Added to the sum of the waits, for the attempts themselves."""
_LIBRARY: Final = {"lease": LEASE_S, "ttl": TTL_S}


def settled(defaults: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """All options with a value, after conflicts are resolved. `defaults` are those of the app."""
    values: dict[str, Any] = {**_LIBRARY, **defaults, **named}

    def yields(name: str, to: str) -> bool:
        return _rank(name, defaults, named) < _rank(to, defaults, named)

    lives = [_needed(name, values) for name in _NEEDS if yields("ttl", name)]
    values["ttl"] = ttl = max([values["ttl"], *lives])
    lease, timeout = values["lease"], values.get("timeout")
    if lease and yields("lease", "ttl"):
        values["lease"] = max(min(lease, ttl // 2), SHORTEST_LEASE_S)
    if timeout is not None and yields("timeout", "ttl"):
        values["timeout"] = min(timeout, ttl / 2)
    if lease == 0 and values.get("replicate") is not None and yields("replicate", "lease"):
        values["replicate"] = 1
    sync, replicate = values.get("sync"), values.get("replicate")
    if sync is not None and replicate is not None:
        if yields("sync", "replicate") or lease == 0:
            values["sync"] = min(sync, replicate)
        elif yields("replicate", "sync"):
            values["replicate"] = max(sync, replicate)
    return values


def life(seconds: float) -> int:
    """The least default TTL of a job with this delay, lease or timeout: twice as long."""
    return math.ceil(2 * seconds)


_NEEDS: Final = ("delay", "lease", "timeout", "retry")


def _needed(name: str, values: Mapping[str, Any]) -> int:
    """The TTL that this option requires, in seconds."""
    value = values[name]
    if name == "retry":
        waits = value.longest() if isinstance(value, Policy) and values["lease"] else 0
        return math.ceil(waits) + _RUNS_S if waits > values["ttl"] else 0
    return life(value or 0)


def _rank(name: str, defaults: Mapping[str, Any], named: Mapping[str, Any]) -> int:
    return 2 if name in named else int(name in defaults)
