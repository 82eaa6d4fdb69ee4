"""Keys of rows, by which nodes recognize a row that is written again (ADDJOB UNIQUE, decision 86).

The key of a row is its place in the write: the query and its batch, the task and the row's number
in it, and a digest of the body. Other rows at the same place are other jobs, so that a row is never
taken for another one.
"""

import hashlib
from typing import Final

import attrs

LONGEST: Final = 256
"""Bytes of a key, as nodes take it."""


@attrs.frozen
class Keys:
    """The keys of a task's rows."""

    write: str
    """Names the write: the query and the batch, or the option `writeId`."""
    task: int
    is_content: bool
    """The body alone counts, not its place: equal rows of the write are one job."""

    def of(self, row: int, body: bytes) -> bytes:
        """The key of the row with this number in its task."""
        if self.is_content:
            return f"{self.write}/{_digest(body, 16)}".encode()
        return f"{self.write}/{self.task}/{row}/{_digest(body, 8)}".encode()


def _digest(body: bytes, size: int) -> str:
    return hashlib.blake2b(body, digest_size=size).hexdigest()
