"""Runs cases in callgrind, and reads what it has counted."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.instructions.cases import Case
from benchmarks.tool import BenchmarkError, run

TOOL: Final = "valgrind"
HOW_TO_INSTALL: Final = f"""{TOOL} is not on PATH, and it counts the instructions:
  Debian, Ubuntu   apt install valgrind
  Fedora           dnf install valgrind"""
_MARKS: Final = "getppid"
"""The function of the C library that `cases.mark` calls, and nothing else in a node."""
_PATIENCE_S: Final = 1200.0
_SUMMARY: Final = re.compile(r"^summary: (\d+)", re.MULTILINE)
_KEPT: Final = ("PATH", "HOME", "PYTHONPATH", "PYTHONSAFEPATH", "VIRTUAL_ENV")
"""Of the environment: the more variables, the more places of objects differ."""


def is_installed() -> bool:
    """Is there a valgrind?"""
    return shutil.which(TOOL) is not None


def count(cases: Sequence[Case], keep: Path | None = None) -> dict[str, float]:
    """Instructions of each operation, by the name of its case. BenchmarkError if a case fails.

    `keep` is a folder for callgrind's files, for `callgrind_annotate`.
    """
    with tempfile.TemporaryDirectory(prefix="instructions-") as name:
        folder = Path(name)
        ran = _run(cases, folder)
        processes = dict(line.split(" ")[::-1] for line in ran.stdout.splitlines())
        if ran.returncode or processes.keys() != {case.name for case in cases}:
            raise BenchmarkError(f"a case failed in {TOOL}:\n{ran.stderr[-3000:]}")
        found = {case: _measured(folder, process) for case, process in processes.items()}
        if keep is not None:
            _keep(found, keep)
        return {case.name: _total(found[case.name]) / case.count for case in cases}


def version() -> str:
    """Of valgrind."""
    return run([TOOL, "--version"], _PATIENCE_S).stdout.strip()


def _run(cases: Sequence[Case], folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [
        "env", "-i", "PYTHONHASHSEED=0",
        *(f"{name}={os.environ[name]}" for name in _KEPT if name in os.environ),
        TOOL, "--tool=callgrind", f"--dump-before={_MARKS}",
        f"--callgrind-out-file={folder}/%p",
        sys.executable, "-m", "benchmarks.instructions.child", *(case.name for case in cases),
    ]  # fmt: skip
    try:
        return run(command, _PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"{TOOL} was not done after {_PATIENCE_S:g} s") from None


def _measured(folder: Path, process: str) -> list[Path]:
    """What was counted within the meter: a process writes one file at each mark, and every second
    one is about what came before the end of the meter."""
    marks = len(list(folder.glob(f"{process}.*")))
    return [folder / f"{process}.{number}" for number in range(2, marks + 1, 2)]


def _total(files: Sequence[Path]) -> int:
    total = 0
    for file in files:
        summary = _SUMMARY.search(file.read_text("utf-8"))
        if summary is None:
            raise BenchmarkError(f"{TOOL} has written no summary")
        total += int(summary[1])
    return total


def _keep(found: dict[str, list[Path]], keep: Path) -> None:
    keep.mkdir(parents=True, exist_ok=True)
    for case, files in found.items():
        for number, file in enumerate(files, 1):
            shutil.copy(file, keep / f"{case}.{number}")
