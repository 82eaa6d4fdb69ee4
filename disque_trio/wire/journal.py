"""The append-only file's bytes, in our format and in the original's. This module reads and writes
no files.

`Writer` encodes records, `Reader` decodes them. The two formats are in `framed` and `commandlog`.
"""

import enum
import re
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from disque_trio.statemachine.base import FORMAT, JOB_ID_LENGTH
from disque_trio.statemachine.records import DeleteJob, Record
from disque_trio.wire import commandlog, framed
from disque_trio.wire.framed import Stop
from disque_trio.wire.jobs import DamagedError

_SKIP: Final = "'disque-trio aof repair --skip-damaged FILE' keeps every record that is sound; "
_CUT: Final = "'disque-trio aof repair --cut-damaged FILE' keeps what stands before the damage; "
_LOOK: Final = "see whether this is the file that is meant; "
_FOREIGN: Final = "not an append-only file"
_RESTORE: Final = "or restore the file from a backup, or move it away to start without it"


class Format(enum.Enum):
    """The formats of a file. The values are those of `aof-format`."""

    FRAMED = "framed"
    """Ours: each record has a length and a checksum, so that damage is detected."""
    DISQUE = "disque"
    """The original's: commands in the form of client requests."""


class DamagedFileError(DamagedError):
    """A file is damaged at `offset`, the end of its last sound record.

    `advice` has possible remedies, with FILE for the file's name.
    """

    def __init__(self, reason: str, offset: int, advice: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.reason} at byte {self.offset:,}"


class NewerFileError(DamagedFileError):
    """A file was written by a newer version, and is sound up to `offset`.

    `needs` is the version that has written it; empty if unknown. `advice` is the beginning of a
    sentence.
    """

    def __init__(self, reason: str, offset: int, written_by: "WrittenBy") -> None:
        is_named = written_by.format > FORMAT
        self.needs = written_by.version if is_named else ""
        advice = f"Start disque-trio {self.needs} or later with it"
        super().__init__(reason, offset, advice if is_named else "Start a later version with it")
        self._writer = f"disque-trio {self.needs} (format {written_by.format})"
        if not is_named:
            self._writer = f"a later version of disque-trio than this one (format {FORMAT})"

    def __str__(self) -> str:
        return f"it was written by {self._writer}: {super().__str__()}"


_NOTE: Final = re.compile(rb"D-00000000-format\+(\d+)\+by\+([^+]*)\+*-0000")
_TEXT_SIZE: Final = JOB_ID_LENGTH - len(b"D-00000000--0000")


class WrittenBy(NamedTuple):
    """The version that has written a part of a file."""

    format: int = 0
    """Its format number (`base.FORMAT`); 0 if the file has no note about it."""
    version: str = ""

    def note(self) -> DeleteJob:
        """The note that the following records are of this version. It has the form of the deletion
        of a job that never existed, which other readers ignore. A long version name is
        truncated."""
        text = b"format+%d+by+%b" % (self.format, self.version.replace("+", ".").encode())
        return DeleteJob(b"D-00000000-%b-0000" % text[:_TEXT_SIZE].ljust(_TEXT_SIZE, b"+"))


def this(version: str) -> WrittenBy:
    """This program; `version` is the name of its version."""
    return WrittenBy(FORMAT, version)


def _noted(record: Record) -> WrittenBy | None:
    found = _NOTE.fullmatch(record.id) if isinstance(record, DeleteJob) else None
    return None if found is None else WrittenBy(int(found[1]), found[2].decode("ascii", "replace"))


class Writer:
    """Encodes the records of one file. Every framed file has a `salt` of its own: 32 random
    bits."""

    __slots__ = ("draft", "encode", "encode_live", "format", "header", "salt", "seal")

    def __init__(self, format_: Format, salt: int = 0) -> None:
        self.format = format_
        self.salt = salt
        self.encode: Callable[[Record], bytes] = commandlog.encode
        """Encodes a record."""
        self.encode_live: Callable[[Record], bytes] = commandlog.encode_for_original
        """Encodes a record as nodes write it: any node that reads this format can load it."""
        self.draft = self.encode_live
        """As `encode_live`, without the part that depends on the file, which `seal` adds."""
        self.seal: Callable[[bytes], bytes] = bytes
        """Completes the bytes of `draft` for this file."""
        self.header = b""
        """The file's header."""
        if format_ is Format.FRAMED:
            self.encode = self.encode_live = partial(framed.encode, salt)
            self.draft, self.seal = framed.draft, partial(framed.seal, salt)
            self.header = framed.header(salt)

    def beginning(self, version: str) -> bytes:
        """The beginning of a new file of a node: the header and, in our format, a note about the
        version."""
        is_ours = self.format is Format.FRAMED
        return self.header + self.encode(this(version).note()) if is_ours else self.header


class Reader:
    """Parses a file's bytes, in pieces of any size, into records, and detects the format.

    Every complete record is checked; damage raises an error. A crash may leave an incomplete last
    record, or zeros at the end: `finish` returns their length.
    """

    def __init__(self) -> None:
        self.format: Format | None = None
        """Determined from the first bytes; None for an empty file."""
        self.salt = 0
        self.offset = 0
        """The end of the last complete record; a file truncated here is sound."""
        self.written_by = WrittenBy()
        """The version that has written the last records. Its notes are not returned as records."""
        self._newer = ""
        """Content at the end that a newer version must have written, if bytes are missing there."""
        self._pieces: list[bytes] = []
        self._held = 0
        self._needed = 1
        self._is_blank = False
        self._damage: DamagedFileError | None = None

    def feed(self, chunk: bytes) -> list[Record]:
        """The records that these bytes complete.

        Raises DamagedFileError once all records before the damage have been returned;
        NewerFileError instead, if the file is not damaged but was written by a newer version.
        """
        if self._damage is not None:
            raise self._damage
        if self._is_blank:
            # After zeros, check that only zeros follow.
            if chunk.count(0) < len(chunk):
                self._damage = self._damaged("zeros in place of a record")
                raise self._damage
            self._held += len(chunk)
            return []
        self._pieces.append(chunk)
        self._held += len(chunk)
        if self._held < self._needed:
            return []
        data = b"".join(self._pieces)
        found: list[Record] = []
        stop = self._read(data, found)
        notes = [note for record in found if (note := _noted(record)) is not None]
        if notes:
            self.written_by = notes[-1]
            found = [record for record in found if _noted(record) is None]
        self.offset += stop.at
        self._pieces = [data[stop.at :]]
        self._held = len(data) - stop.at
        self._needed = stop.needed
        self._newer = stop.newer
        if stop.newer and not stop.needed:
            self._end(NewerFileError(stop.newer, self.offset, self.written_by), found)
        if stop.damage:
            self._on_damage(stop.damage, found)
        return found

    def finish(self) -> int:
        """The number of bytes at the end that are not a complete record.

        Raises DamagedFileError as `feed` does.
        """
        if self._damage is not None:
            raise self._damage
        if self._newer:
            raise NewerFileError(self._newer, self.offset, self.written_by)
        return self._held

    def writer(self) -> Writer:
        """A writer that continues this file. The format must be known."""
        assert self.format is not None
        return Writer(self.format, self.salt)

    def _read(self, data: bytes, found: list[Record]) -> Stop:
        if self.format is Format.FRAMED:
            return framed.decode(self.salt, data, 0, found)
        if self.format is Format.DISQUE:
            return commandlog.decode(data, 0, found)
        if data[:1] == b"*":
            self.format = Format.DISQUE
            return commandlog.decode(data, 0, found)
        if not framed.is_header(data[: framed.HEADER_SIZE]):
            return Stop(0, damage=_FOREIGN)
        newer = framed.newer_version(data[: framed.HEADER_SIZE])
        if newer or len(data) < framed.HEADER_SIZE:
            needed = framed.HEADER_SIZE if len(data) < framed.HEADER_SIZE else 0
            return Stop(0, needed=needed, newer=newer)
        try:
            self.salt = framed.salt_of(data[: framed.HEADER_SIZE])
        except DamagedError as error:
            return Stop(0, damage=error.reason)
        self.format = Format.FRAMED
        return framed.decode(self.salt, data, framed.HEADER_SIZE, found)

    def _on_damage(self, reason: str, found: list[Record]) -> None:
        """Handle bytes that are not a record: zeros that were never overwritten, or damage."""
        rest = self._pieces[0]
        if rest.count(0) == len(rest):
            self._pieces = []
            self._is_blank = True
            return
        self._end(self._damaged(reason), found)

    def _end(self, error: DamagedFileError, found: list[Record]) -> None:
        """End the file with an error, after these last records are returned."""
        self._damage = error
        if not found:
            raise error

    def _damaged(self, reason: str) -> DamagedFileError:
        cure = {Format.FRAMED: _SKIP, Format.DISQUE: _CUT, None: _SKIP}[self.format]
        if reason == _FOREIGN:
            cure = _LOOK
        return DamagedFileError(reason, self.offset, cure + _RESTORE)
