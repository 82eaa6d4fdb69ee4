"""The append-only file's commands: `disque-trio aof` (docs/journal.md)."""

from collections.abc import Sequence
from typing import Final

from disque_trio.cli import frame
from disque_trio.cli.aof import options
from disque_trio.cli.aof.check import check
from disque_trio.cli.aof.convert import convert
from disque_trio.cli.aof.dump import dump
from disque_trio.cli.aof.repair import repair
from disque_trio.terminal.options import Command, Family

_EPILOG: Final = """\
FILE is an append-only file in the format of disque_trio (framed) or of the original server
(disque). The format is detected.

exit status:
  0    the file is sound, or was repaired, converted or printed
  1    the file is damaged; nothing was written
  2    usage: a bad option, or a file that cannot be read or written, or that a running node uses
  3    check and dump: the file is sound except for a torn tail, which a crash can cause
  4    the file was written by a newer version; nothing was written
  130  interrupted by Ctrl-C; no file was changed
  143  terminated by SIGTERM; no file was changed

docs/journal.md describes the formats.
"""


def main(arguments: Sequence[str]) -> int:
    """Run a command. Return the exit status, as described in `--help`."""
    return frame.run("aof", PROGRAM, arguments)


PROGRAM: Final = Family(
    about="Check, repair, convert and print append-only files.",
    epilog=_EPILOG,
    commands={
        "check": Command(
            record=options.Check,
            run=check,
            about="Read a whole file, and report its contents and any damage.",
            more="The file of a running node may be checked; its last record may then be "
            "incomplete.",
        ),
        "repair": Command(
            record=options.Repair,
            run=repair,
            about="Cut off a torn tail, or omit damaged records.",
            more="The repaired file replaces the file atomically. The old file is kept, with "
            ".before-repair appended to its name. If the record of a deletion is lost, its job "
            "is restored.",
        ),
        "convert": Command(
            record=options.Convert,
            run=convert,
            about="Write a copy of a file in either format.",
            more="A torn tail is omitted.",
        ),
        "dump": Command(
            record=options.Dump,
            run=dump,
            about="Print all records, one per line.",
            more="Times are in UTC. With --json, a string that is not UTF-8 has one character per "
            "byte, as in 'disque-trio cli --json'.",
        ),
    },
)
