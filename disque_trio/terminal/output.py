"""What the command lines write to the terminal.

Names, bodies, reasons and errors come from producers, workers and nodes, and may hold what commands
a terminal: to change its title or clipboard, or to erase what it shows. So everything is written
through this module, which shows such characters as escapes (`tests/terminal/test_output.py`).
"""

import io
import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Final

from disque_trio.terminal.escapes import is_mark, is_seen, printable, printable_lines

_LEAST: Final = 12
"""Columns of a table are not cut below this width."""
_PADDED: Final = 64
"""Without a terminal nothing is cut, but one long name does not make every line as long."""
_WHOLE: Final = frozenset({"ID", "JOB"})
"""Heads of columns that are not cut: such values are copied into the next command."""
_OTHER: Final = re.compile(r"[^ -~\n]")


def say(line: object = "") -> None:
    """Write one line of a result."""
    sys.stdout.write(printable(str(line)) + "\n")


def say_lines(text: str) -> None:
    """Write a text of several lines, none of whose line ends came from others."""
    sys.stdout.write(printable_lines(text).rstrip("\n") + "\n")


def complain(line: object) -> None:
    """Write one line to standard error, at once."""
    sys.stderr.write(printable(str(line)) + "\n")
    sys.stderr.flush()


def complain_lines(text: str) -> None:
    """Write a text of several lines to standard error, none of whose line ends came from others."""
    sys.stderr.write(printable_lines(text).rstrip("\n") + "\n")
    sys.stderr.flush()


def flush() -> None:
    """Let the reader see what has been written. At the exit, an error of the flush would have no
    message of ours."""
    if sys.stdout is not None:  # it is None if the caller has closed it
        sys.stdout.flush()


def discard_output() -> None:
    """The output cannot be written: without this, Python's flush at exit would fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def escape_the_rest() -> None:
    """From now on, characters that the encoding of the output lacks are written as escapes: with
    LANG=C or Latin-1, a name of a queue would end the program otherwise."""
    usual = ("strict", "surrogateescape")
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in usual:
        sys.stdout.reconfigure(errors="backslashreplace")


def say_json(value: Any, *, indent: int | None = None, is_compact: bool = False) -> None:
    """Write a value as JSON, on one line unless `indent` is given."""
    text = json_text(value, indent=indent, is_compact=is_compact)
    sys.stdout.write(_OTHER.sub(_json_of_lacking, text) + "\n")


def json_text(value: Any, *, indent: int | None = None, is_compact: bool = False) -> str:
    """A value as JSON. Characters that would command a terminal are escaped in its strings."""
    separators = (",", ":") if is_compact else None
    text = json.dumps(value, ensure_ascii=False, default=str, indent=indent, separators=separators)
    return _OTHER.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    each = found[0]
    return each if is_seen(each) else json.dumps(each)[1:-1]


def _json_of_lacking(found: re.Match[str]) -> str:
    """JSON has escapes of its own for what the encoding of the output lacks."""
    each = found[0]
    try:
        each.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(each)[1:-1]
    return each


# Tables.


def say_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write columns with spaces between them, cut to the width of a terminal."""
    for line in lines_of(heads, rows, terminal_width()):
        sys.stdout.write(line + "\n")


def say_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Write names and whole values, a line for each."""
    found = [(printable(name), printable(str(value))) for name, value in facts]
    width = min(max((width_of(name) for name, _ in found), default=0), _PADDED)
    for name, value in found:
        sys.stdout.write(f"{name}{' ' * (width - width_of(name))}  {value}".rstrip() + "\n")


def terminal_width() -> int | None:
    """Columns of the terminal that results go to; None if they go elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def lines_of(
    heads: Sequence[str], rows: Iterable[Sequence[object]], width: int | None = None
) -> list[str]:
    """The lines of such a table. Text that is cut ends with ``…``."""
    table = [[printable(str(cell)) for cell in row] for row in (heads, *rows)]
    widths = [max(map(width_of, column)) for column in zip(*table, strict=True)]
    if width is None:
        widths = [min(each, _PADDED) for each in widths]
    else:
        widths = _fitted(heads, widths, width)
        table = [[cut(c, w) for c, w in zip(row, widths, strict=True)] for row in table]
    padded = (
        [cell + " " * (each - width_of(cell)) for cell, each in zip(row, widths, strict=True)]
        for row in table
    )
    return ["  ".join(row).rstrip() for row in padded]


def _fitted(heads: Sequence[str], widths: list[int], width: int) -> list[int]:
    """Narrow the widest columns until the lines fit, as far as they may be narrowed."""
    widths = list(widths)
    least = [
        each if head in _WHOLE else min(each, max(_LEAST, len(head)))
        for head, each in zip(heads, widths, strict=True)
    ]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        able = [at for at, each in enumerate(widths) if each > least[at]]
        if not able:
            break
        widest = max(able, key=widths.__getitem__)
        others = [widths[at] for at in able if at != widest]
        over = sum(widths) + 2 * (len(widths) - 1) - width
        to = max(
            least[widest], widths[widest] - over, min(max(others, default=0), widths[widest] - 1)
        )
        widths[widest] = to
    return widths


def cut(text: str, width: int) -> str:
    """At most so many columns of it; the last is ``…`` if there is more."""
    if width_of(text) <= width:
        return text
    taken, left = [], width - 1
    for each in text:
        left -= width_of(each)
        if left < 0:
            break
        taken.append(each)
    return "".join(taken) + "…"


def width_of(text: str) -> int:
    """Columns of a terminal that it takes."""
    if text.isascii():
        return len(text)
    return sum(_width(each) for each in text)


def _width(character: str) -> int:
    if is_mark(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
