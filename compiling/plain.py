"""What records of the compiled form have in common. `build` copies this file into the package.

A record that attrs makes is an ordinary Python class to mypyc. `lower` turns it into a native class
that inherits from one of these, and that is equal, shown, hashed and evolved as attrs would do it.
"""

import contextlib
from typing import Any, ClassVar, TypeVar

import attrs

with contextlib.suppress(ImportError):  # the compiler needs it, and an installed wheel does not
    from mypy_extensions import mypyc_attr

R = TypeVar("R")


class Field:
    """As much of `attrs.Attribute` as `attrs.evolve`, `attrs.asdict` and `attrs.fields` look at.
    Of a default that is made for each record it knows nothing."""

    def __init__(
        self, name: str, default: object = attrs.NOTHING, init: bool = True, repr: bool = True
    ) -> None:
        self.name = name
        self.default = default
        self.alias = name.lstrip("_")
        self.init = init
        self.repr = repr


@mypyc_attr(allow_interpreted_subclasses=True)
class Plain:
    """A record that is equal to itself alone."""

    __attrs_attrs__: ClassVar[tuple[Field, ...]] = ()

    def __repr__(self) -> str:
        shown = (field.name for field in self.__attrs_attrs__ if field.repr)
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__name__}({values})"


@mypyc_attr(allow_interpreted_subclasses=True)
class Record(Plain):  # noqa: PLW1641 - as attrs has it, it cannot be hashed
    """A record that is equal to others of its class with the same values."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = [field.name for field in self.__attrs_attrs__]
        return all(getattr(self, name) == getattr(other, name) for name in names)


@mypyc_attr(allow_interpreted_subclasses=True)
class Frozen(Record):
    """A record with a hash. Nothing keeps its fields from being set: the pure form does."""

    def __hash__(self) -> int:
        return hash(tuple([getattr(self, field.name) for field in self.__attrs_attrs__]))


def evolve(record: R, **changes: Any) -> R:
    """The same record, but for these fields. mypy takes `attrs.evolve` for attrs classes alone."""
    evolved: Any = attrs.evolve
    made: R = evolved(record, **changes)
    return made
