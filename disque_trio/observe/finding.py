"""The doctor's findings, with advice, for people and for programs."""

import enum
from typing import Final

import attrs


class Level(enum.IntEnum):
    """The severity; the worst one determines the exit status."""

    NOTE = 0
    """For information."""
    WARNING = 1
    """Everything works, but it needs attention."""
    PROBLEM = 2
    """Something does not work, or jobs are at risk."""


ANEW: Final = "CONFIG RESETSTAT counts anew"
"""Advice for counters that run since the start."""
STATUS_NAMES: Final = {Level.NOTE: "well", Level.WARNING: "warnings", Level.PROBLEM: "problems"}


@attrs.frozen
class Finding:
    """A finding. `where` is a node's address, a file, or `this machine`."""

    level: Level
    where: str
    what: str
    advice: str = ""
    is_by_queue: bool = False
    """Is the same told by queue, where queues are counted?"""
    link: str = ""
    """The page of the console about it; that of the cluster if there is none."""
    stake: float = 0.0
    """Of findings of the same level, the one with most comes first: jobs times seconds."""

    def as_dict(self) -> dict[str, str]:
        """For JSON."""
        return {
            "level": self.level.name.lower(),
            "where": self.where,
            "what": self.what,
            "advice": self.advice,
        }


def note(where: str, what: str, advice: str = "") -> Finding:
    """A finding for information."""
    return Finding(Level.NOTE, where, what, advice)


def warning(where: str, what: str, advice: str) -> Finding:
    """A finding that needs attention."""
    return Finding(Level.WARNING, where, what, advice)


def problem(where: str, what: str, advice: str) -> Finding:
    """A finding that something does not work."""
    return Finding(Level.PROBLEM, where, what, advice)


def worst(findings: list[Finding]) -> Level:
    """The worst level among them."""
    return max((finding.level for finding in findings), default=Level.NOTE)


def spelled(seconds: int) -> str:
    """Such as 90 s, 5 min, 3 hours or 2 days."""
    for size, unit in ((86_400, "days"), (3600, "hours"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
