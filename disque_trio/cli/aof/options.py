"""The options of `disque-trio aof`."""

import argparse
from collections.abc import Sequence
from typing import Final

import attrs

from disque_trio.cli.frame import Family, add_json
from disque_trio.wire.journal import Format

_EPILOG: Final = """\
FILE is an append-only file of ours or of the original; which of the two shows by itself.

exit status:
  0    the file is sound, or has been mended, converted, shown
  1    the file is damaged; nothing was written
  2    usage: a bad option, a file that cannot be read or written, or that a running node holds
  3    check and dump: the file is sound but for a torn tail, as a crash leaves it behind
  130  interrupted by Ctrl-C; no file has been changed

docs/journal.md describes the formats.
"""


@attrs.frozen(kw_only=True)
class Options:
    """One command line."""

    command: str
    file: str
    out: str = ""
    to: Format = Format.FRAMED
    is_json: bool = False
    is_agreed: bool = False
    is_skipping: bool = False
    is_cutting: bool = False
    is_compact: bool = False
    has_bodies: bool = False

    def subject(self) -> str:
        """The file."""
        return self.file


def parse(arguments: Sequence[str]) -> Options:
    """The options, or SystemExit after a message or help."""
    return Options(**vars(_family().parse(arguments)))


def _family() -> Family:
    family = Family("aof", "Look at, mend and convert append-only files.", _EPILOG)
    _check(family)
    _repair(family)
    _convert(family)
    _dump(family)
    return family


def _command(family: Family, name: str, about: str, more: str = "") -> argparse.ArgumentParser:
    parser = family.command(name, about, more)
    parser.add_argument("file", metavar="FILE", help="an append-only file")
    add_json(parser)
    return parser


def _check(family: Family) -> None:
    _command(
        family,
        "check",
        "Read a whole file, and tell what is in it and whether it is sound.",
        "A running node may hold it; then its last record may be seen half written.",
    )


def _repair(family: Family) -> None:
    parser = _command(
        family,
        "repair",
        "Cut off a torn tail, or leave out what is damaged.",
        "The file is replaced by a mended one in one step; the old one is kept beside it, with "
        ".before-repair behind its name. A deletion that is lost brings its job back.",
    )
    parser.add_argument(
        "-y", "--yes", dest="is_agreed", action="store_true", help="do it without asking"
    )
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--skip-damaged", dest="is_skipping", action="store_true",
        help="leave out damaged records and keep all others (our format only)",
    )  # fmt: skip
    ways.add_argument(
        "--cut-damaged", dest="is_cutting", action="store_true",
        help="keep what stands before the first damage and drop the rest (either format)",
    )  # fmt: skip


def _convert(family: Family) -> None:
    parser = _command(
        family,
        "convert",
        "Write a file anew, in either format.",
        "A torn tail is left out.",
    )
    parser.add_argument("out", metavar="OUT", help="the new file; it must not be there yet")
    parser.add_argument(
        "--to", type=_format, default=Format.FRAMED, metavar="FORMAT",
        help="framed: ours; disque: the original's (framed)",
    )  # fmt: skip
    parser.add_argument(
        "--compact", dest="is_compact", action="store_true",
        help="only the last record of each job that is neither deleted nor expired",
    )  # fmt: skip


def _dump(family: Family) -> None:
    parser = _command(
        family,
        "dump",
        "Show every record, one on each line.",
        "Times are in UTC. With --json, strings that are not UTF-8 have one character for each "
        "byte, as in 'disque-trio cli --json'.",
    )
    parser.add_argument(
        "--bodies", dest="has_bodies", action="store_true", help="show the jobs' bodies as well"
    )


def _format(word: str) -> Format:
    try:
        return Format(word)
    except ValueError:
        known = " or ".join(format_.value for format_ in Format)
        raise argparse.ArgumentTypeError(f"{word} is no format: {known}") from None
