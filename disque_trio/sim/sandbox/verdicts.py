"""The verdict of the checkers on a sandbox, in words."""

from collections.abc import Generator
from typing import Any, Final

from disque_trio.sim.checkers.duplicates import CAUSES
from disque_trio.sim.checkers.properties import PROPERTIES
from disque_trio.sim.checkers.verdict import Verdict, judge
from disque_trio.sim.picture import findings
from disque_trio.sim.sandbox.sandbox import Sandbox
from disque_trio.terminal.counting import counted

Json = dict[str, Any]


PIECE: Final = 1_000
"""The number of rows between two pauses."""


def judging(box: Sandbox) -> Generator[None, None, Json]:
    """Judge all rows so far, in pieces of work. Liveness is not judged before the end."""
    checkers = judge(box.plan())
    for number, row in enumerate(box.rows, 1):
        checkers.see(row)
        if not number % PIECE:
            yield
    return _in_words(box, checkers.finish())


def verdict(box: Sandbox) -> Json:
    """Judge all rows so far at once."""
    pieces = judging(box)
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            found: Json = end.value
            return found


def _in_words(box: Sandbox, found: Verdict) -> Json:
    meanings = findings.properties(found)
    return {
        "at": box.now,
        "ok": found.ok,
        "is_whole": box.is_finished,
        "says": _summarize(box, found),
        "findings": [
            {
                "property": name,
                "meaning": meanings.get(name, ""),
                "job": job,
                "at": at,
                "says": description,
            }
            for name, job, at, description in findings.violations(found, 0)
        ],
        "duplicates": [
            {"cause": cause, "meaning": CAUSES[cause], "count": count}
            for cause, count in found.duplicates.items()
        ],
        "doubts": [each for each in findings.doubts(found) if _UNTESTED not in each],
        "meanings": dict(PROPERTIES),
        "untested": [name for name, why in found.not_judged.items() if why == _UNTESTED],
    }


_UNTESTED = "it was not tested"


def _summarize(box: Sandbox, found: Verdict) -> list[str]:
    """Return sentences about the fate of the jobs."""
    again = found.deliveries - found.distinct
    confirmed = box.counts["add.ok"]
    jobs = counted(confirmed, "job was", "jobs were")
    lines = [f"{jobs} confirmed; delivered: {found.distinct}."]
    if again:
        lines.append(f"Redeliveries: {again}, each with a known cause.")
    if found.lost:
        lines.append(
            f"{found.lost} were lost, though faults had destroyed too few copies for that."
        )
    if found.excused:
        lines.append(f"{found.excused} were lost with all their copies, which faults destroyed.")
    if not box.is_finished:
        lines.append(
            "The run continues: only Finish judges whether each job was delivered in time."
        )
    return lines
