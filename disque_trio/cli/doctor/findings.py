"""What the doctor says: findings with advice, for people and for programs."""

import enum
from typing import Final

import attrs


class Level(enum.IntEnum):
    """How bad it is; the exit status follows the worst."""

    NOTE = 0
    """Good to know."""
    WARNING = 1
    """Everything works, and somebody should look at it."""
    PROBLEM = 2
    """Something does not work, or jobs are at risk."""


ANEW: Final = "CONFIG RESETSTAT counts anew"
"""What to say of whatever is counted since the start."""
STATUS_NAMES: Final = {Level.NOTE: "well", Level.WARNING: "warnings", Level.PROBLEM: "problems"}


@attrs.frozen
class Finding:
    """One of them. `where` is a node's address, a file, or `this machine`."""

    level: Level
    where: str
    what: str
    advice: str = ""

    def as_dict(self) -> dict[str, str]:
        """For JSON."""
        return {
            "level": self.level.name.lower(),
            "where": self.where,
            "what": self.what,
            "advice": self.advice,
        }


def note(where: str, what: str, advice: str = "") -> Finding:
    """Good to know."""
    return Finding(Level.NOTE, where, what, advice)


def warning(where: str, what: str, advice: str) -> Finding:
    """Somebody should look at it."""
    return Finding(Level.WARNING, where, what, advice)


def problem(where: str, what: str, advice: str) -> Finding:
    """It does not work."""
    return Finding(Level.PROBLEM, where, what, advice)


def worst(findings: list[Finding]) -> Level:
    """The worst level among them."""
    return max((finding.level for finding in findings), default=Level.NOTE)
