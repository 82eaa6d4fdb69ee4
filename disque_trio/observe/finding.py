"""A finding: what is wrong, what to do, and the operation that fits; for the doctor and the
console."""

import enum
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

import attrs


class Level(enum.IntEnum):
    """The severity; the worst one determines the exit status."""

    NOTE = 0
    """For information."""
    WARNING = 1
    """Everything works, but it needs attention."""
    PROBLEM = 2
    """Something does not work, or jobs may be lost."""


RESET: Final = "CONFIG RESETSTAT resets the counters"
"""Advice for counters that run since the node's start."""
STATUS_NAMES: Final = {Level.NOTE: "well", Level.WARNING: "warnings", Level.PROBLEM: "problems"}


@attrs.frozen
class Finding:
    """A finding. `where` is a node's address, a file, a queue, or `this machine`."""

    level: Level
    where: str
    what: str
    advice: str = ""
    kind: str = attrs.field(default="", kw_only=True)
    """The name of the check, to which the rules of deploy/prometheus refer."""
    link: str = attrs.field(default="", kw_only=True)
    """The page of the console about it; if empty, the page of the cluster."""
    stake: float = attrs.field(default=0.0, kw_only=True)
    """Jobs times seconds. Findings of one level are sorted by it, the highest first."""
    since: float | None = attrs.field(default=None, kw_only=True)
    """In Unix seconds; None if unknown."""
    operation: str = attrs.field(default="", kw_only=True)
    """The key of the operation that fits (`observe.operations`); empty if there is none."""
    args: Mapping[str, str] = attrs.field(default=MappingProxyType({}), kw_only=True)
    """Arguments of the operation, as a browser sends them."""

    def as_dict(self) -> dict[str, object]:
        """Return the finding for JSON."""
        return {
            "level": self.level.name.lower(),
            "kind": self.kind,
            "where": self.where,
            "what": self.what,
            "advice": self.advice,
            "since": None if self.since is None else _timestamp(self.since),
            "operation": self.operation,
            "arguments": dict(self.args),
        }


def _timestamp(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")


def note(where: str, what: str, advice: str = "", **more: Any) -> Finding:
    """Return a finding for information."""
    return Finding(Level.NOTE, where, what, advice, **more)


def warning(where: str, what: str, advice: str, **more: Any) -> Finding:
    """Return a finding that needs attention."""
    return Finding(Level.WARNING, where, what, advice, **more)


def problem(where: str, what: str, advice: str, **more: Any) -> Finding:
    """Return a finding about something that does not work."""
    return Finding(Level.PROBLEM, where, what, advice, **more)


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Sort the findings: the worst first, then by `stake`."""
    return sorted(findings, key=lambda each: (-each.level, -each.stake))


def grouped(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings of the same level, kind and advice into one with all their places, in the
    order of the first. A finding with an operation is merged only with those of the same place."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for each in findings:
        alone = each.where if each.operation or not each.advice else ""
        groups.setdefault((each.level, each.kind, each.advice, alone), []).append(each)
    return [_merged(group) for group in groups.values()]


def _merged(group: list[Finding]) -> Finding:
    first = group[0]
    if len(group) == 1:
        return first
    places: dict[str, list[str]] = {}
    for each in group:
        places.setdefault(each.what, []).append(each.where)
    whats = [(", ".join(wheres), what) for what, wheres in places.items()]
    rest = [f"{where}: {what}" for where, what in whats[1:]]
    known = [each.since for each in group if each.since is not None]
    return attrs.evolve(
        first,
        where=whats[0][0],
        what="; ".join([whats[0][1], *rest]),
        since=min(known, default=None),
    )


def worst(findings: list[Finding]) -> Level:
    """Return the worst level among them."""
    return max((finding.level for finding in findings), default=Level.NOTE)


def spelled(seconds: int) -> str:
    """Return a duration such as 90 s, 5 min, 3 hours or 2 days."""
    for size, unit in ((86_400, "days"), (3600, "hours"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
