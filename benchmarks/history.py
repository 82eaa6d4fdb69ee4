"""Ratios by commit: a line for each recorded run, and regressions since."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import report as reports
from benchmarks.case import Case
from benchmarks.contenders import PURE
from benchmarks.report import Report

PATH: Final = Path(__file__).with_name("history.jsonl")
TOLERANCE: Final = 0.10
"""A ratio that falls by more is reported."""


def read(path: Path = PATH) -> list[dict[str, Any]]:
    """All lines, the oldest first."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


def line(report: Report, cases: Sequence[Case]) -> dict[str, Any]:
    """The line for a run."""
    return {
        "date": report.date,
        "commit": report.commit,
        "machine": report.machine,
        "versions": report.versions,
        "size": report.size,
        "ratios": reports.ratios(report, cases),
    }


def record(report: Report, cases: Sequence[Case], path: Path = PATH) -> None:
    """Add a line."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line(report, cases), sort_keys=True) + "\n")


def regressions(
    report: Report, cases: Sequence[Case], lines: Iterable[dict[str, Any]]
) -> list[str]:
    """Messages about ratios that are lower than when they were last recorded.

    Only runs of the same form and size on machines of the same shape, against the same versions of
    others, are compared.
    """
    said = []
    lines = list(lines)
    for name, ratios in reports.ratios(report, cases).items():
        like = [line for line in lines if _is_like(line, report, name)]
        for what, now in ratios.items():
            before = next((line for line in reversed(like) if what in line["ratios"][name]), None)
            if before is None:
                continue
            then = before["ratios"][name][what]
            if now < then * (1 - TOLERANCE):
                said.append(
                    f"{what}: {now:.2f} times as good as {name}, "
                    f"and {then:.2f} times at {before['commit']} ({before['date']})"
                )
    return said


def _is_like(line: dict[str, Any], report: Report, name: str) -> bool:
    return (
        line["machine"] == report.machine
        and line["versions"].get(name) == report.versions[name]
        and line["size"] == report.size
        and name in line["ratios"]
        and (PURE in line["versions"]) == (PURE in report.versions)
    )
