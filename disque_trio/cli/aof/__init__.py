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
FILE is an append-only file of ours or of the original; which of the two shows by itself.

exit status:
  0    the file is sound, or has been mended, converted, shown
  1    the file is damaged; nothing was written
  2    usage: a bad option, a file that cannot be read or written, or that a running node holds
  3    check and dump: the file is sound but for a torn tail, as a crash leaves it behind
  4    a newer version has written the file; nothing was written
  130  interrupted by Ctrl-C; no file has been changed
  143  the same, by SIGTERM

docs/journal.md describes the formats.
"""


def main(arguments: Sequence[str]) -> int:
    """Run a command. The exit status; `--help` says what it means."""
    return frame.run("aof", PROGRAM, arguments)


PROGRAM: Final = Family(
    about="Check, repair, convert and print append-only files.",
    epilog=_EPILOG,
    commands={
        "check": Command(
            record=options.Check,
            run=check,
            about="Read a whole file, and report its contents and any damage.",
            more="A running node may hold it; then its last record may be seen half written.",
        ),
        "repair": Command(
            record=options.Repair,
            run=repair,
            about="Cut off a torn tail, or leave out what is damaged.",
            more="The file is replaced by a mended one in one step; the old one is kept beside it, "
            "with .before-repair behind its name. A deletion that is lost brings its job back.",
        ),
        "convert": Command(
            record=options.Convert,
            run=convert,
            about="Rewrite a file in either format.",
            more="A torn tail is left out.",
        ),
        "dump": Command(
            record=options.Dump,
            run=dump,
            about="Show every record, one on each line.",
            more="Times are in UTC. With --json, strings that are not UTF-8 have one character for "
            "each byte, as in 'disque-trio cli --json'.",
        ),
    },
)
