"""How safe a job is. What the library adds for a job, such as its result, is as safe."""

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

import attrs


@attrs.frozen(kw_only=True)
class Copies:
    """Options of ADDJOB; None is what its node takes."""

    replicate: int | None = None
    """How many nodes hold it."""
    sync: int | None = None
    """How many of them have confirmed it when it counts as added."""

    @property
    def awaited(self) -> int | Literal["auto"]:
        """SYNC: of three copies two, unless somebody has named another number."""
        return self.sync or "auto"

    @classmethod
    def of(cls, values: Mapping[Any, Any]) -> Self:
        """Of headers, or of options. What is no count is left out."""
        found = {name: values.get(name) for name in ("replicate", "sync")}
        return cls(**{name: each for name, each in found.items() if is_count(each)})

    def as_options(self) -> dict[str, int]:
        """For `of`, and for ADDJOB: what is not None."""
        return {name: each for name, each in attrs.asdict(self).items() if each is not None}


NO_COPIES: Final = Copies()


def is_count(value: object) -> bool:
    """Is it a number of nodes?"""
    return type(value) is int and 0 < value < 1 << 16
