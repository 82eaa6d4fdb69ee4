"""A scan of a whole file: its records, and how it ends."""

from collections.abc import Callable
from typing import Any, Final

import attrs

from disque_trio.cli.aof.outcomes import DAMAGED, NEWER, SOUND, TORN
from disque_trio.cli.aof.source import Source
from disque_trio.cli.aof.tally import Tally
from disque_trio.statemachine.records import Record
from disque_trio.terminal.counting import counted
from disque_trio.wire.journal import DamagedFileError, Format, NewerFileError, Reader

Sink = Callable[[list[Record]], None]

NAMES: Final = {
    None: "empty",
    Format.FRAMED: "our format (framed)",
    Format.DISQUE: "the original's format (disque)",
}


@attrs.frozen
class Scan:
    """What was found."""

    source: Source
    format: Format | None
    end: int
    """Where the last sound record ends."""
    torn: int
    damage: DamagedFileError | None

    @property
    def name(self) -> str:
        """What kind of file it is."""
        return "a file" if self.is_newer and self.format is None else NAMES[self.format]

    @property
    def is_newer(self) -> bool:
        """Is there no damage, but what this version does not know?"""
        return isinstance(self.damage, NewerFileError)

    @property
    def status(self) -> int:
        """The exit status that says how sound the file is."""
        if self.is_newer:
            return NEWER
        if self.damage is not None:
            return DAMAGED
        return TORN if self.torn and not self.source.is_held else SOUND

    @property
    def verdict(self) -> str:
        """How sound the file is, in one line or two."""
        if self.is_newer:
            return f"newer than this version, not damaged: {self.damage}\n  {self.advice}"
        if self.damage is not None:
            return f"damaged: {self.damage}\n  {self.advice}"
        if not self.torn:
            return "sound"
        if self.source.is_held:
            return f"sound; {counted(self.torn, 'byte')} of a record that is being written"
        return (
            f"torn tail: the {counted(self.torn, 'byte')} from byte {self.end:,} on are an "
            f"incomplete record, which a crash can cause\n  "
            f"'disque-trio aof repair {self.source.path}' cuts the tail off; so does the start of "
            f"a node, unless 'aof-load-truncated no' is set"
        )

    @property
    def advice(self) -> str:
        """What can be done about it."""
        assert self.damage is not None
        return self.damage.advice.replace("FILE", self.source.path)

    @property
    def facts(self) -> dict[str, Any]:
        """As JSON values."""
        facts: dict[str, Any] = {
            "file": self.source.path,
            "format": None if self.format is None else self.format.value,
            "size": self.source.size,
            "sound": self.end,
            "torn": self.torn,
            "damage": None,
            "newer": None,
            "held": self.source.is_held,
        }
        if self.damage is not None:
            found = {
                "reason": self.damage.reason,
                "offset": self.damage.offset,
                "advice": self.advice,
            }
            if isinstance(self.damage, NewerFileError):
                facts["newer"] = {**found, "needs": self.damage.needs or None}
            else:
                facts["damage"] = found
        return facts


def scan(source: Source, doing: str, *sinks: Sink) -> Scan:
    """Read the file, up to its end or to damage, and give each sink its records."""
    reader = Reader()
    torn, damage = 0, None
    try:
        for records in source.read(reader, doing):
            for sink in sinks:
                sink(records)
        torn = reader.finish()
    except DamagedFileError as error:
        damage = error
    return Scan(source, reader.format, reader.offset, torn, damage)


def scan_and_count(source: Source, doing: str) -> tuple[Scan, Tally]:
    """Read the file and count its jobs."""
    tally = Tally()
    return scan(source, doing, tally.count), tally
