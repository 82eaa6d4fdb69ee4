"""`disque-trio aof convert`: rewrite a file in either format."""

import os
import secrets
import time
from collections.abc import Callable

from disque_trio.cli.aof.options import Convert
from disque_trio.cli.aof.outcomes import SOUND
from disque_trio.cli.aof.report import out
from disque_trio.cli.aof.scan import Scan, scan, scan_and_count
from disque_trio.cli.aof.source import Source
from disque_trio.cli.aof.tally import Tally
from disque_trio.cli.aof.target import Target
from disque_trio.statemachine.records import Record
from disque_trio.terminal.counting import counted
from disque_trio.terminal.options import UsageError
from disque_trio.terminal.output import say_json
from disque_trio.wire.commandlog import NoPlaceError
from disque_trio.wire.journal import Writer


def convert(options: Convert) -> int:
    """Check the file, then write the new one."""
    if os.path.lexists(options.out):
        raise UsageError(f"{options.out} exists: remove it, or give another name")
    source = Source(options.file)
    try:
        found, tally = scan_and_count(source, "checking")
        if found.damage is not None:
            return _refuse(options, found)
        written, size = _write(options, source, tally)
    finally:
        source.close()
    if options.is_json:
        facts = {"out": options.out, "to": options.to.value, "written": written, "new_size": size}
        say_json({**found.facts, **facts}, is_compact=True)
        return SOUND
    out().print(
        f"{options.out}: {counted(written, 'record')} of {tally.records:,} in "
        f"{counted(size, 'byte')} ({options.to.value})"
    )
    if found.torn:
        out().print(f"  a torn tail of {counted(found.torn, 'byte')} was omitted")
    return SOUND


def _refuse(options: Convert, found: Scan) -> int:
    if options.is_json:
        say_json({**found.facts, "written": 0}, is_compact=True)
    else:
        out().print(f"{options.file}: {found.verdict}")
    return found.status


def _write(options: Convert, source: Source, tally: Tally) -> tuple[int, int]:
    """How many records have been written, and how many bytes."""
    writer = Writer(options.to, secrets.randbits(32))
    chosen = _living(tally) if options.is_compact else list[Record]
    written = 0
    with Target(options.out, source.status) as target:
        target.write(writer.header)

        def sink(records: list[Record]) -> None:
            nonlocal written
            kept = chosen(records)
            written += len(kept)
            target.write(b"".join([_encoded(writer, record) for record in kept]))

        scan(source, "writing", sink)
        return written, target.size


def _encoded(writer: Writer, record: Record) -> bytes:
    try:
        return writer.encode_live(record)
    except NoPlaceError as error:
        raise UsageError(
            f"job {error} has extensions, such as PRIORITY, or a result, which the format of the "
            "original cannot represent; nothing was written"
        ) from None


def _living(tally: Tally) -> Callable[[list[Record]], list[Record]]:
    """A filter of batches of records in turn that keeps those that a node would have in the end."""
    now = time.time()
    last = {last.number for last in (*tally.left(now), *tally.left_results(now))}
    passed = 0

    def chosen(records: list[Record]) -> list[Record]:
        nonlocal passed
        first, passed = passed, passed + len(records)
        return [record for number, record in enumerate(records, first) if number in last]

    return chosen
