"""Cuts what is to be sent into windows: few enough for one request, one batch or one task."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeVar

_IDS: Final = 500


class _WithBody(Protocol):
    @property
    def body(self) -> bytes | None: ...


Item = TypeVar("Item", bound=_WithBody)


def windows(items: Iterable[Item], most: int, most_bytes: int) -> Iterator[list[Item]]:
    """Items in windows of at most so many; one ends when its bodies are longer than `most_bytes`.
    The same items give the same windows."""
    window: list[Item] = []
    size = 0
    for item in items:
        window.append(item)
        size += len(item.body or b"")
        if len(window) == most or size > most_bytes:
            yield window
            window, size = [], 0
    if window:
        yield window


def of_ids(ids: Sequence[str], most: int = _IDS) -> Iterator[Sequence[str]]:
    """Ids in windows, by default those of one command."""
    return (ids[at : at + most] for at in range(0, len(ids), most))
