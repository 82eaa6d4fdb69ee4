"""Errors by the words that the original has; what is said beside them is in `test_errors`."""

import attrs

from disque_trio.statemachine.base import Failure


@attrs.frozen(eq=False)
class Refused:
    """Equals each failure that begins with these words."""

    text: bytes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Failure):
            return NotImplemented
        rest = other.text.removeprefix(self.text)
        return other.text.startswith(self.text) and rest[:1] in (b"", b":", b",", b" ", b";")

    __hash__ = None  # type: ignore[assignment]
