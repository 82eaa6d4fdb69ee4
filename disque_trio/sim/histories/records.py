"""The parts of histories: calls of clients and faults; and violations found in them."""

import math
from collections.abc import Sequence
from typing import Any, Final

import attrs

Seconds = float
ENDLESS: Final = math.inf

PROPERTIES: Final = {
    "H1": "integrity: what is delivered was added to this queue, with this body",
    "H2": "ids are unique, and encode the delivery semantics",
    "H3": "a job with RETRY 0 is delivered at most once",
    "H4": "an added job with RETRY is delivered until it is acknowledged",
    "H5": "in calm, no job is delivered after its acknowledgement",
    "H6": "no job is delivered before its DELAY, or after its TTL",
    "H7": "in calm, the calls about a key have an order in which one job has it at a time",
    "H8": "MAXLEN refuses only, and on a lone node always, what would make the queue too long",
    "H9": "in calm, a lone node delivers a queue by priority, then by age",
    "H10": "in calm, a job is delivered at most LIMIT times",
    "H11": "replies are to what was asked: the queues, COUNT, IFEXISTS",
    "H12": "WAITJOB reports an end that the job may have had, and a result that was given",
}


@attrs.frozen(eq=False, kw_only=True)
class Call:
    """One request and its outcome. An open call has the end `ENDLESS`."""

    client: str
    number: int
    node: str = ""
    """The node of the request, if it is known."""
    request: Sequence[str]
    begin: Seconds
    end: Seconds = ENDLESS
    """When its reply arrived."""
    reply: Any = None
    error: str | None = None
    lost_at: Seconds = ENDLESS
    """When the client gave up; `ENDLESS` for an answered call as well."""
    line: str = ""
    """The place of its request: ``file:number``."""

    @property
    def is_ok(self) -> bool:
        """Did it get a reply that is no error?"""
        return self.end < ENDLESS and self.error is None

    @property
    def command(self) -> str:
        """The name of the command."""
        return self.request[0].upper()


@attrs.frozen(kw_only=True)
class Fault:
    """A known fault."""

    kind: str
    at: Seconds
    until: Seconds = ENDLESS
    node: str = ""
    has_lost_memory: bool = False


@attrs.frozen(kw_only=True)
class Limits:
    """Tolerances of the judge, in seconds."""

    settle: Seconds = 30.0
    """How long after the end of a fault the cluster does not count as calm."""
    slack: Seconds = 2.0
    """How late messages in a calm cluster may be."""
    skew: Seconds = 0.05
    """How far the clocks of two clients, or of a client and a node, may differ."""


@attrs.define(eq=False, kw_only=True)
class History:
    """Calls and faults, each in the order of their start."""

    calls: Sequence[Call]
    faults: Sequence[Fault] = ()
    has_all_faults: bool = False
    """Are there no other faults?"""
    has_all_clients: bool = True
    """Did no other clients use these queues?"""
    limits: Limits = Limits()

    @property
    def end(self) -> Seconds:
        """When the last call began or ended."""
        ends = [each for call in self.calls for each in (call.begin, call.end) if each < ENDLESS]
        return max(ends, default=0.0)

    def is_calm(self, begin: Seconds, end: Seconds) -> bool:
        """Was there no fault in this period, nor within the settling time before it? False if
        faults are unknown."""
        settle = self.limits.settle
        return self.has_all_faults and not any(
            fault.at <= end and begin <= fault.until + settle for fault in self.faults
        )

    @property
    def has_wrong_clocks(self) -> bool:
        """Was a clock wrong at any time?"""
        return any(fault.kind.startswith(("clock", "wall")) for fault in self.faults)

    def keeps_memory(self, begin: Seconds, end: Seconds) -> bool:
        """Did no node lose jobs in this period, and was no clock ever wrong? False if faults are
        unknown."""
        return (
            self.has_all_faults
            and not self.has_wrong_clocks
            and not any(
                fault.has_lost_memory and fault.at <= end and begin <= fault.until
                for fault in self.faults
            )
        )

    def calm_periods(self) -> list[tuple[Seconds, Seconds]]:
        """Return the calm periods between faults, in order; none if faults are unknown."""
        if not self.has_all_faults:
            return []
        found, begin = [], -math.inf
        for fault in sorted(self.faults, key=lambda fault: fault.at):
            if begin < fault.at:
                found.append((begin, fault.at))
            begin = max(begin, fault.until + self.limits.settle)
        return [*found, (begin, math.inf)] if begin < math.inf else found


@attrs.frozen(kw_only=True)
class Violation:
    """A violated property."""

    property: str
    text: str
    job: str = ""
    at: Seconds = 0.0
    lines: tuple[str, ...] = ()
    """The requests that show the violation, as ``file:number``."""


class HistoryError(ValueError):
    """A line cannot be part of a history. The text has the line, the field, its value, and
    advice."""

    def __init__(self, place: str, field: str, value: object, advice: str) -> None:
        shown = f"{value!r:.80}"
        super().__init__(
            f"{place}: {field} cannot be {shown}: {advice}" if field else f"{place}: {advice}"
        )
