"""Reads the arguments of an operation. They come from a browser or a file, so they may be
anything."""

from collections.abc import Mapping
from typing import Any

import attrs

from disque_trio.sim.fault_controls import number_of

Json = dict[str, Any]
_SHOWN = 40


class OperationError(Exception):
    """The operation cannot be carried out; the text says why, and what could be."""


@attrs.define
class Args:
    """The arguments, each checked when it is read. `used` has those that were read."""

    values: Mapping[str, Any]
    nodes: list[str]
    """The existing nodes."""
    used: Json = attrs.Factory(dict)

    def has(self, name: str) -> bool:
        """Is the argument given?"""
        return self.values.get(name) is not None

    def node(self, name: str = "node") -> str:
        """Return the name of a node."""
        self.used[name] = self._known(self.values.get(name))
        return str(self.used[name])

    def sides(self, name: str) -> list[list[str]]:
        """Return groups of nodes, with no node in two of them."""
        values = self.values.get(name)
        if not isinstance(values, list) or not all(isinstance(side, list) for side in values):
            raise OperationError(f"'{name}' is no list of lists of nodes")
        found = [[self._known(node) for node in side] for side in values if side]
        flat = [node for side in found for node in side]
        if len(found) < 2 or len(set(flat)) < len(flat):
            raise OperationError("choose two sides or more, and each node for one of them")
        self.used[name] = found
        return found

    def number(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """Return a whole number within bounds. Without a default it must be given."""
        value = self.values.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise OperationError(f"'{name}' is {_shown(value)}, not a number from {low} to {high}")
        self.used[name] = value
        return value

    def optional(self, name: str, low: int, high: int) -> int | None:
        """Return a whole number, or None if it is not given."""
        return self.number(name, low, high) if self.has(name) else None

    def text(self, name: str, default: str, most: int) -> str:
        """Return a text that is not empty."""
        value = self.values.get(name, default)
        if not isinstance(value, str) or not 0 < len(value) <= most or not _is_text(value):
            raise OperationError(f"'{name}' is {_shown(value)}, not a text of 1 to {most} letters")
        self.used[name] = value
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self.values.get(name, default)
        if not isinstance(value, bool):
            raise OperationError(f"'{name}' is {_shown(value)}, neither true nor false")
        self.used[name] = value
        return value

    def _known(self, value: object) -> str:
        if not isinstance(value, str) or value not in self.nodes:
            raise OperationError(f"there is no node {_shown(value)}: {', '.join(self.nodes)}")
        return value


def in_order(names: list[str]) -> list[str]:
    """Return nodes in the order of their numbers."""
    return sorted(names, key=number_of)


def _is_text(value: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def _shown(value: object) -> str:
    text = "missing" if value is None else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
