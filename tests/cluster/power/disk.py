"""What is left on a disk when the power fails, by a recording of a process's system calls.

The strict reading of POSIX: data is durable once a sync of its file has returned that began behind
the write, and a name once a sync of its directory has. Of everything else an arbitrary first part
stays, of data maybe half a write or zeros in its place, and of names apart from the data.
"""

import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

RECORDING: Final = "recording"
"""The name of the recording's file, in the directory that it is about."""
Entry = tuple[str, int, int, bytes]
"""The kind of a call, its descriptor, its offset, and its data or names."""
_ENTRY: Final = struct.Struct("<BiqI")
_CHANGES: Final = "oOruwt"
"""The kinds that change names or data."""
_ZEROS: Final = 0.25
"""How often zeros stand in the place of a write: the file had grown before it was written."""


class UnrecordedError(Exception):
    """The files are not what the recording says: a call has escaped it."""


@attrs.frozen
class Write:
    """Bytes at an offset."""

    offset: int
    data: bytes

    def apply(self, content: bytearray) -> None:
        """Write them; a gap in front is zeros."""
        content.extend(bytes(max(0, self.offset - len(content))))
        content[self.offset : self.offset + len(self.data)] = self.data

    def torn(self, rng: random.Random) -> "Write":
        """What is left of it if the power fails."""
        size = rng.randrange(len(self.data) + 1)
        return Write(self.offset, bytes(size) if rng.random() < _ZEROS else self.data[:size])


@attrs.frozen
class Truncation:
    """A new size."""

    size: int

    def apply(self, content: bytearray) -> None:
        """Cut, or extend with zeros."""
        content.extend(bytes(max(0, self.size - len(content))))
        del content[self.size :]

    def torn(self, rng: random.Random) -> "Truncation | Write":
        """It is done or not."""
        return self if rng.random() < 1 / 2 else Write(0, b"")


@attrs.define(eq=False)
class File:
    """The durable content of a file, and what was done since, oldest first."""

    content: bytearray
    pending: list[Write | Truncation] = attrs.Factory(list)
    settled: int = 0
    """How many changes are durable."""

    @property
    def changes(self) -> int:
        """How many there have been."""
        return self.settled + len(self.pending)

    def settle(self, changes: int) -> None:
        """The first so many changes of all are durable."""
        count = max(0, changes - self.settled)
        for change in self.pending[:count]:
            change.apply(self.content)
        del self.pending[:count]
        self.settled += count

    def lose_power(self, rng: random.Random) -> None:
        """An arbitrary first part of the changes stays, and maybe a part of one more."""
        self.settle(rng.randint(self.settled, self.changes))
        for change in self.pending[:1]:
            change.torn(rng).apply(self.content)
        self.pending.clear()


@attrs.define(eq=False)
class Handle:
    """An open descriptor."""

    name: str
    """Of the file when it was opened; empty for the directory."""
    file: File
    covered: int = 0
    """How many changes of all a sync that is under way makes durable."""


class Disk:
    """A directory's files, from when there were none."""

    def __init__(self, directory: Path, *others: str) -> None:
        self._directory = directory
        self._ignored = {RECORDING, *others}
        self._states: list[dict[str, File]] = [{}]
        """What the names were after each change; the last is what the process sees."""
        self._settled = 0
        """The position of the durable state."""
        self._handles: dict[int, Handle] = {}

    def keep(self) -> None:
        """The process has ended, and the power has not failed: all that it wrote is there."""
        recording = self._directory / RECORDING
        if recording.exists():  # else it ended before it began
            self._replay_all(list(_entries(recording.read_bytes())))
            recording.unlink()
        self._handles.clear()

    def cut_power(self, rng: random.Random) -> None:
        """Leave what a power cut could have left; the process has been killed."""
        self.keep()
        found = rng.choice(self._states[self._settled :])
        for path in self._paths():
            path.unlink()
        for name, file in found.items():
            file.lose_power(rng)
            (self._directory / name).write_bytes(file.content)
        self._states, self._settled = [found], 0

    def _paths(self) -> list[Path]:
        return sorted(path for path in self._directory.iterdir() if path.name not in self._ignored)

    def _replay_all(self, entries: list[Entry]) -> None:
        """Raises `UnrecordedError` unless they lead to the files that there are. The kill may have
        come before the call of the last entry."""
        for entry in entries[:-1]:
            self._replay(*entry)
        is_right = not self._odd()
        for entry in entries[-1:]:
            if not (is_right and entry[0] in _CHANGES):
                self._replay(*entry)
        if not is_right and (odd := self._odd()):
            raise UnrecordedError(f"{', '.join(odd)} in {self._directory}")

    def _replay(self, kind: str, descriptor: int, offset: int, data: bytes) -> None:
        if kind in "oO":
            self._open(descriptor, data.decode(), is_truncated=kind == "O")
            return
        if kind in "ru":
            self._rename(*data.decode().split("/"))
            return
        handle = self._handles[descriptor]
        match kind:
            case "c":
                del self._handles[descriptor]
            case "w":
                handle.file.pending.append(Write(offset, data))
            case "t":
                handle.file.pending.append(Truncation(offset))
            case "b":
                handle.covered = handle.file.changes if handle.name else len(self._states) - 1
            case _:
                self._sync(handle)

    def _open(self, descriptor: int, name: str, *, is_truncated: bool) -> None:
        names = self._states[-1]
        if name and name not in names:
            self._states.append({**names, name: File(bytearray())})
        file = self._states[-1][name] if name else File(bytearray())
        if is_truncated:
            file.pending.append(Truncation(0))
        self._handles[descriptor] = Handle(name, file)

    def _rename(self, old: str, new: str = "") -> None:
        names = dict(self._states[-1])
        file = names.pop(old)
        self._states.append({**names, new: file} if new else names)

    def _sync(self, handle: Handle) -> None:
        if handle.name:
            handle.file.settle(handle.covered)
        else:
            self._settled = max(self._settled, handle.covered)

    def _odd(self) -> list[str]:
        """The files that are not what the recording has led to so far."""
        names = self._states[-1]
        odd = [name for name, file in names.items() if not self._is_found(name, file)]
        return odd + [path.name for path in self._paths() if path.name not in names]

    def _is_found(self, name: str, file: File) -> bool:
        path = self._directory / name
        content = bytearray(file.content)
        for change in file.pending:
            change.apply(content)
        return path.exists() and path.read_bytes() == content


def _entries(data: bytes) -> Iterator[Entry]:
    at = 0
    while at + _ENTRY.size <= len(data):
        kind, descriptor, offset, length = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size + length
        if at <= len(data):  # else the kill has cut it off
            yield chr(kind), descriptor, offset, data[at - length : at]
