"""`disque-trio aof repair`: cut off a torn tail, or leave out what is damaged."""

import contextlib
import mmap
import secrets
import sys
from collections.abc import Iterator

import attrs

from disque_trio.cli.aof.options import Repair
from disque_trio.cli.aof.outcomes import SOUND
from disque_trio.cli.aof.report import errors, out
from disque_trio.cli.aof.scan import Scan, scan
from disque_trio.cli.aof.source import Source
from disque_trio.cli.aof.target import Target, keep
from disque_trio.statemachine.journaling import QUEUES, UNKNOWN
from disque_trio.statemachine.records import Record
from disque_trio.terminal.counting import counted
from disque_trio.terminal.options import UsageError
from disque_trio.terminal.output import say_json
from disque_trio.wire import framed
from disque_trio.wire.jobs import DamagedError
from disque_trio.wire.journal import Format, NewerFileError, Writer
from disque_trio.wire.salvage import Gap, salvage

_CHUNK = 1 << 20
_MOST_GAPS = 8


@attrs.define
class Loss:
    """What a repair leaves out."""

    records: int = 0
    """Records that are kept; counted only if the file is written record by record."""
    gaps: list[Gap] = attrs.field(factory=list)
    sound: int = 0
    """Sound records after the first damage that are cut off with it; counted only in our format."""

    @property
    def bytes(self) -> int:
        """All bytes that are left out."""
        return sum(gap.end - gap.start for gap in self.gaps)


def repair(options: Repair) -> int:
    """Repair the file, if it is damaged and the user agrees."""
    source = Source(options.file, is_exclusive=True)
    try:
        return _repair(options, source)
    finally:
        source.close()


def _repair(options: Repair, source: Source) -> int:
    found = scan(source, "checking")
    is_repairable = options.is_skipping or options.is_cutting
    if found.is_newer or (found.damage is not None and not is_repairable):
        return _refuse(options, found)
    if found.damage is None and not found.torn:
        return _report(options, found, "", Loss())
    if options.is_skipping and found.damage is not None:
        if found.format is Format.DISQUE:
            raise UsageError(
                "--skip-damaged needs checksums, which the format of the original does not have; "
                "use --cut-damaged"
            )
        chunks, loss = _salvaged(source)
    else:
        chunks = _copied(source, found) if found.end else _anew(found)
        loss = Loss(gaps=[_rest(found)], sound=_sound_behind(source, found))
    _agree(options, found, loss)
    with Target(options.file, source.status) as target:
        for chunk in chunks:
            target.write(chunk)
        kept = keep(options.file)
    return _report(options, found, kept, loss)


def _refuse(options: Repair, found: Scan) -> int:
    if options.is_json:
        say_json({**found.facts, "repaired": False}, is_compact=True)
    else:
        out().print(f"{options.file}: {found.verdict}")
    return found.status


def _rest(found: Scan) -> Gap:
    reason = "torn tail" if found.damage is None else found.damage.reason
    return Gap(found.end, found.source.size, reason)


def _sound_behind(source: Source, found: Scan) -> int:
    if found.damage is None or found.format is Format.DISQUE:
        return 0
    sound, is_behind = 0, False
    whole = mmap.mmap(source.descriptor, 0, access=mmap.ACCESS_READ)
    with whole as data, contextlib.suppress(DamagedError):
        for part in _parts(source, data):
            is_behind |= isinstance(part, Gap)
            sound += is_behind and not isinstance(part, Gap)
    return sound


def _anew(found: Scan) -> Iterator[bytes]:
    """Nothing is left: a file of the same format without records."""
    yield Writer(found.format or Format.FRAMED, secrets.randbits(32)).header


def _copied(source: Source, found: Scan) -> Iterator[bytes]:
    left = found.end
    with open(source.path, "rb") as file:
        while left and (chunk := file.read(min(_CHUNK, left))):
            left -= len(chunk)
            yield chunk
    if found.damage is not None and found.format is Format.FRAMED:
        with mmap.mmap(source.descriptor, 0, access=mmap.ACCESS_READ) as data:
            if _has_queues(data):
                yield framed.encode(framed.salt_of(data[: framed.HEADER_SIZE]), UNKNOWN)


def _has_queues(data: mmap.mmap) -> bool:
    """Does the file say what is queued (`aof-queues`)? What is left out may say that jobs have left
    their queues."""
    return data.find(QUEUES) >= 0


def _salvaged(source: Source) -> tuple[Iterator[bytes], Loss]:
    """The sound parts of the file, and the loss, which is complete once they are all read."""
    loss = Loss()
    return _sound_parts(source, loss), loss


def _parts(source: Source, data: mmap.mmap) -> Iterator[Record | Gap]:
    """What is in the file. UsageError at what only a newer version can keep."""
    try:
        yield from salvage(data)
    except NewerFileError as error:
        raise UsageError(
            f"{source.path} is damaged, and this version would delete some of its records: "
            f"{error}. Repair it with 'disque-trio aof' of that version; nothing was changed"
        ) from None


def _sound_parts(source: Source, loss: Loss) -> Iterator[bytes]:
    writer = Writer(Format.FRAMED, secrets.randbits(32))
    yield writer.header
    with mmap.mmap(source.descriptor, 0, access=mmap.ACCESS_READ) as data:
        try:
            for part in _parts(source, data):
                if isinstance(part, Gap):
                    loss.gaps.append(part)
                else:
                    loss.records += 1
                    yield writer.encode(part)
            if _has_queues(data):
                yield writer.encode(UNKNOWN)
        except DamagedError as error:
            raise UsageError(
                f"{source.path}: {error.reason}, and no record of the format framed follows"
            ) from None


def _agree(options: Repair, found: Scan, loss: Loss) -> None:
    """Ask, unless --yes has been given. Raises UsageError if the answer is no."""
    if options.is_agreed:
        return
    errors().print(f"{options.file}: {found.verdict.splitlines()[0]}")
    if options.is_skipping and found.damage is not None:
        plan = "omit the damaged records"
    else:
        plan = f"cut the file at byte {found.end:,} of {found.source.size:,}"
        if not found.end:
            plan += ", which leaves no job in it"
        if loss.sound:
            records = counted(loss.sound, "sound record")
            plan += f", and drop {records} after it, which --skip-damaged would keep"
    if not sys.stdin.isatty():
        raise UsageError(f"give --yes to {plan}")
    errors().print(f"{plan[0].upper()}{plan[1:]}? The old file is kept. [y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise UsageError("nothing was changed")


def _report(options: Repair, found: Scan, kept: str, loss: Loss) -> int:
    if options.is_json:
        facts = {
            **found.facts,
            "repaired": bool(kept),
            "kept": kept or None,
            "sound_records_lost": loss.sound,
            "lost": [
                {"start": gap.start, "end": gap.end, "reason": gap.reason} for gap in loss.gaps
            ],
        }
        say_json(facts, is_compact=True)
        return SOUND
    say = out().print
    if not kept:
        say(f"{options.file}: sound, nothing to repair")
        return SOUND
    places = "" if len(loss.gaps) == 1 else f" in {counted(len(loss.gaps), 'place')}"
    say(f"{options.file}: repaired; {counted(loss.bytes, 'byte')} removed{places}")
    for gap in loss.gaps[:_MOST_GAPS]:
        say(f"  bytes {gap.start:,} to {gap.end - 1:,}: {gap.reason}")
    if len(loss.gaps) > _MOST_GAPS:
        say(f"  and {counted(len(loss.gaps) - _MOST_GAPS, 'more place')}")
    if kept and not found.end and not loss.records:
        say("  no record was sound; the repaired file has no records")
    if loss.sound:
        say(
            f"  {counted(loss.sound, 'sound record')} after the damage dropped: 'disque-trio aof "
            f"repair --skip-damaged {kept}' restores them"
        )
    say(f"  the old file is kept as {kept}")
    return SOUND
