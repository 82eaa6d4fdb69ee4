"""What all benchmarks print and write alike: the console, `--json`, `--only`."""

import argparse
import json
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from rich.console import Console

from benchmarks.tool import BenchmarkError

UNUSABLE: Final = 2
"""The exit code for options that cannot be used."""
_WIDE: Final = 160
"""Columns of output to a file."""


class Named(Protocol):
    """What `--only` can name."""

    @property
    def name(self) -> str:
        """Its name."""


NamedT = TypeVar("NamedT", bound=Named)


def console() -> Console:
    """Standard output."""
    found = Console()
    if not found.is_terminal:
        found.width = _WIDE
    return found


def refuse(out: Console, error: BenchmarkError) -> int:
    """Print why nothing can be measured. Returns the exit code."""
    out.print(f"cannot measure: {error}", style="red", highlight=False, markup=False)
    return UNUSABLE


def add_json(parser: argparse.ArgumentParser, about: str = "write the figures there too") -> None:
    """The option `--json`."""
    parser.add_argument("--json", type=Path, metavar="FILE", help=about)


def write_json(path: Path | None, facts: Any) -> None:
    """Write the facts to the file of `--json`, if there is one."""
    if path is not None:
        path.write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


def add_only(parser: argparse.ArgumentParser) -> None:
    """The option `--only`."""
    parser.add_argument(
        "--only", default="", metavar="CASE,CASE", help="these cases; three-* means all that fit"
    )


def only(text: str, cases: Sequence[NamedT], what: str = "case; see --list") -> list[NamedT]:
    """The cases that `--only` names; all without it. `what` says which the cases are."""
    words = split("--only", text)
    for word in words:
        if not any(fnmatch(case.name, word) for case in cases):
            raise BenchmarkError(f"--only {word}: there is no such {what}")
    return [case for case in cases if not words or any(fnmatch(case.name, word) for word in words)]


def split(option: str, text: str) -> list[str]:
    """The words between commas; BenchmarkError if there are only commas."""
    words = [word for word in text.split(",") if word]
    if text and not words:
        raise BenchmarkError(f"{option} {text}: it names nothing")
    return words
