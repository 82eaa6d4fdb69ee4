"""The number of replicas and confirmations of a job. Jobs that the library adds for it, such as its
result, have the same."""

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

import attrs


@attrs.frozen(kw_only=True)
class Copies:
    """Options of ADDJOB; None is the default of the node."""

    replicate: int | None = None
    """The number of nodes that hold the job."""
    sync: int | None = None
    """The number of replicas that are confirmed before the job counts as added."""

    @property
    def awaited(self) -> int | Literal["auto"]:
        """The SYNC option: a majority, unless `sync` sets another number."""
        return self.sync or "auto"

    @classmethod
    def of(cls, values: Mapping[Any, Any]) -> Self:
        """From headers or options. Invalid values are ignored."""
        found = {name: values.get(name) for name in ("replicate", "sync")}
        return cls(**{name: each for name, each in found.items() if is_count(each)})

    def as_options(self) -> dict[str, int]:
        """The values that are not None."""
        return {name: each for name, each in attrs.asdict(self).items() if each is not None}


NO_COPIES: Final = Copies()


def is_count(value: object) -> bool:
    """Is it a valid number of nodes?"""
    return type(value) is int and 0 < value < 1 << 16
