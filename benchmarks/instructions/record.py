"""The recorded counts: a file for each form, with the build that they belong to.

Counts depend on the interpreter, the C library, the compiler and what they are run with, so those
of another build are not compared.
"""

import datetime
import json
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import attrs

from benchmarks.instructions import counting
from benchmarks.tool import run
from disque_trio.statemachine.form import COMPILED, FORM

TOLERANCE: Final = 0.02
"""A count that grows by more is an error."""
_LIBRARIES: Final = ("attrs", "google-crc32c", "msgspec", "trio")
_AVX: Final = "avx2"


@attrs.frozen
class Record:
    """What the file has."""

    build: Mapping[str, str]
    counts: Mapping[str, int]
    changes: tuple[Mapping[str, Any], ...] = ()
    """Each time that it was written: when, why, and what was different before."""


@attrs.frozen
class Verdict:
    """A case beside its record."""

    name: str
    now: int
    recorded: int | None

    @property
    def ratio(self) -> float | None:
        """How many times as many as recorded."""
        return self.now / self.recorded if self.recorded else None

    @property
    def is_worse(self) -> bool:
        """Has it grown beyond the tolerance, or is it not recorded?"""
        return self.ratio is None or self.ratio > 1 + TOLERANCE

    @property
    def is_better(self) -> bool:
        """Has it fallen by as much?"""
        return self.ratio is not None and self.ratio < 1 - TOLERANCE


def path(form: str = FORM) -> Path:
    """The file of a form."""
    return Path(__file__).with_name(f"{form}.json")


def read(file: Path) -> Record | None:
    """What it has; None if there is none."""
    if not file.exists():
        return None
    facts = json.loads(file.read_text("utf-8"))
    return Record(facts["build"], facts["counts"], tuple(facts["changes"]))


def write(file: Path, record: Record) -> None:
    """Replace it."""
    file.write_text(json.dumps(attrs.asdict(record), indent=1) + "\n", "utf-8")


def build() -> dict[str, str]:
    """What counts depend on besides the code."""
    found = {
        "python": f"{platform.python_implementation()} {sys.version}",
        "machine": f"{platform.machine()}{f' with {_AVX}' if _has_avx() else ''}",
        "libc": " ".join(platform.libc_ver()),
        "valgrind": counting.version(),
        **{name: version(name) for name in _LIBRARIES},
    }
    if COMPILED:
        found["mypy"] = version("mypy")
        found["compiler"] = run(["cc", "--version"], 60).stdout.splitlines()[0]
    return found


def _has_avx() -> bool:
    """The C library chooses its functions by that."""
    try:
        return _AVX in Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return False


def differences(recorded: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """Where two builds differ."""
    return [
        f"{name}: {recorded.get(name, 'none')} is recorded, {here.get(name, 'none')} is here"
        for name in dict.fromkeys([*recorded, *here])
        if recorded.get(name) != here.get(name)
    ]


def compare(counts: Mapping[str, float], record: Record) -> list[Verdict]:
    """Each case beside what is recorded of it."""
    return [Verdict(name, round(now), record.counts.get(name)) for name, now in counts.items()]


def renewed(
    before: Record | None,
    build: Mapping[str, str],
    counts: Mapping[str, float],
    reason: str,
    *,
    is_whole: bool,
) -> Record:
    """The record with these counts and the reason. Unless they are all there are (`is_whole`), the
    others stay, if they are of the same build."""
    now = {name: round(each) for name, each in counts.items()}
    change: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "reason": reason,
    }
    if before is None:
        return Record(build, now, (change,))
    if before.build == build:
        change["was"] = {
            verdict.name: verdict.recorded
            for verdict in compare(counts, before)
            if verdict.is_better or verdict.is_worse
        }
        now = now if is_whole else {**before.counts, **now}
    else:
        change["builds"] = differences(before.build, build)
    return Record(build, now, (*before.changes, change))
