"""A finding: what is wrong, what to do, which operation fits; for the doctor and the console."""

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
    """Something does not work, or jobs are at risk."""


ANEW: Final = "CONFIG RESETSTAT counts anew"
"""Advice for counters that run since the start."""
STATUS_NAMES: Final = {Level.NOTE: "well", Level.WARNING: "warnings", Level.PROBLEM: "problems"}


@attrs.frozen
class Finding:
    """A finding. `where` is a node's address, a file, a queue, or `this machine`."""

    level: Level
    where: str
    what: str
    advice: str = ""
    kind: str = attrs.field(default="", kw_only=True)
    """The name of the check. The rules of deploy/prometheus name it."""
    link: str = attrs.field(default="", kw_only=True)
    """The page of the console about it; that of the cluster if there is none."""
    stake: float = attrs.field(default=0.0, kw_only=True)
    """Of findings of the same level, the one with most comes first: jobs times seconds."""
    since: float | None = attrs.field(default=None, kw_only=True)
    """In Unix seconds; None if nobody knows."""
    operation: str = attrs.field(default="", kw_only=True)
    """The key of the operation that fits (`observe.operations`); empty for none."""
    args: Mapping[str, str] = attrs.field(default=MappingProxyType({}), kw_only=True)
    """Its arguments, as a browser gives them."""

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
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
    """A finding for information."""
    return Finding(Level.NOTE, where, what, advice, **more)


def warning(where: str, what: str, advice: str, **more: Any) -> Finding:
    """A finding that needs attention."""
    return Finding(Level.WARNING, where, what, advice, **more)


def problem(where: str, what: str, advice: str, **more: Any) -> Finding:
    """A finding that something does not work."""
    return Finding(Level.PROBLEM, where, what, advice, **more)


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """The worst first; of the same level, by what is at stake."""
    return sorted(findings, key=lambda each: (-each.level, -each.stake))


def grouped(findings: Iterable[Finding]) -> list[Finding]:
    """Those with the same advice as one, which names all places; in the order of the first."""
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
    """The worst level among them."""
    return max((finding.level for finding in findings), default=Level.NOTE)


def spelled(seconds: int) -> str:
    """Such as 90 s, 5 min, 3 hours or 2 days."""
    for size, unit in ((86_400, "days"), (3600, "hours"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
