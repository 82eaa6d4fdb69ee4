"""Rules: answers about a job without a trial, each with the property that guarantees it."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from disque_trio.explain.facts import NO_JOURNAL, Facts
from disque_trio.explain.families import Family, applying
from disque_trio.explain.job_request import JobRequest
from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.job import DESYNC
from disque_trio.terminal.counting import counted

NO: Final = "no"
MAY: Final = "may"
YES: Final = "yes"
MEET: Final[Millis] = 1_000
"""Within this time a queued job and a worker that waits meet (L9)."""


@attrs.frozen
class Loss:
    """Is a job that was answered with its id lost?"""

    lost: str
    """`NO`, `MAY`: it depends on the nodes or the moment, or `YES`: every job that waits is."""
    why: str


@attrs.frozen(kw_only=True)
class Answer:
    """The answer of the rules for a job and one family of faults."""

    family: str
    title: str
    loss: Loss
    twice: tuple[str, ...]
    """Causes of duplicates that may occur; none: it comes at most once."""
    late: Millis | None
    """How long after its due time, or the end of a cut, a job that waits comes at the latest, if
    workers wait at each node. None where it may be lost."""


def answers(request: JobRequest, facts: Facts) -> list[Answer]:
    """The answer for each family that applies; none if the job is refused."""
    if refusal(request, facts):
        return []
    return [_answer(family, request, facts) for family in applying(request, facts)]


def refusal(request: JobRequest, facts: Facts) -> str:
    """Why ADDJOB is refused now; empty if it is not."""
    able = facts.nodes - facts.originals * request.is_ours
    if request.confirmed > able:
        few = f"{able} of {counted(facts.nodes, 'node')} can hold it"
        return f"NOREPL: it needs {request.confirmed} replicas; {few}"
    return ""


def _answer(family: Family, request: JobRequest, facts: Facts) -> Answer:
    loss = _LOSSES[family.name](request, facts)
    if loss.lost == NO and not request.comes_back and family.name != "calm":
        loss = _NEVER_BACK if request.retry else _ONCE
    late = None if loss.lost != NO else _late(family, request)
    return Answer(
        family=family.name,
        title=family.title,
        loss=loss,
        twice=_twice(family, request, facts),
        late=late,
    )


_ONCE: Final = Loss(MAY, "RETRY 0: it is delivered once or never (S5)")
_NEVER_BACK: Final = Loss(MAY, "it would be redelivered only after its TTL")


# Losses, by family.


def _none(_asked: JobRequest, _facts: Facts) -> Loss:
    return Loss(NO, "no replica is lost (S2)")


def _cut(request: JobRequest, _facts: Facts) -> Loss:
    return Loss(
        NO, "no replica is lost, and each side continues (L5)" if request.copies == 1 else _SIDES
    )


_SIDES: Final = "no replica is lost; a side with one delivers it (L1)"


def _some_killed(request: JobRequest, facts: Facts) -> Loss:
    """Fewer nodes than there are copies."""
    if facts.journal != NO_JOURNAL:
        return _JOURNAL
    if request.copies == 1:
        return Loss(MAY, "its node has the only replica, in memory")
    if request.is_async:
        return Loss(MAY, "ASYNC: at first only one node has a replica")
    return Loss(NO, f"one of {request.copies} replicas survives and is enqueued (S1)")


_JOURNAL: Final = Loss(NO, "the journal restores it (S15)")


def _holders_killed(request: JobRequest, facts: Facts) -> Loss:
    if facts.journal != NO_JOURNAL:
        return _JOURNAL
    if request.copies >= facts.nodes:
        return Loss(YES, "no other node has a replica, and there is no journal")
    return Loss(MAY, "lost if exactly its holders are killed: there is no journal")


def _zone_killed(request: JobRequest, facts: Facts) -> Loss:
    if facts.journal != NO_JOURNAL or request.copies == 1 or request.is_async:
        return _some_killed(request, facts)
    if request.is_ours and facts.originals:
        return Loss(MAY, "the nodes that can hold it may be in one zone")
    if request.confirmed > max(Counter(facts.zones).values()):
        return Loss(NO, "more nodes confirm it than any zone has (S1)")
    if request.confirmed < request.copies:
        return Loss(MAY, "ADDJOB waits at most 50 ms for a replica in another zone")
    return Loss(NO, "a node of another zone has a replica (S30, S31)")


def _power(_asked: JobRequest, facts: Facts) -> Loss:
    match facts.journal:
        case "always":
            return Loss(NO, "the journal is synced before the reply (S15)")
        case "everysec":
            return Loss(MAY, "the last second is not synced; older jobs are restored (S15)")
        case "no":
            return Loss(MAY, "data that the system has not written is lost")
        case _:
            return Loss(YES, "there is no journal")


def _one_by_one(request: JobRequest, facts: Facts) -> Loss:
    if facts.journal == NO_JOURNAL and request.is_async:
        return _some_killed(request, facts)
    return Loss(NO, "its replica is re-created before the others fail (L7)")


def _rolled(_asked: JobRequest, facts: Facts) -> Loss:
    if facts.journal != NO_JOURNAL:
        return Loss(NO, "each node loads its journal (S21)")
    return Loss(YES, "each node restarts empty, and no other node detects it")


def _worker_dies(request: JobRequest, _facts: Facts) -> Loss:
    if limit := request.extensions.limit:
        deliveries = counted(limit, "delivery", "deliveries")
        return Loss(NO, f"it is redelivered after RETRY; after {deliveries} it is dead")
    return Loss(NO, "it is redelivered after RETRY (L2)")


_LOSSES: Final[dict[str, Callable[[JobRequest, Facts], Loss]]] = {
    "calm": _none,
    "one-killed": _some_killed,
    "all-but-one-copy": _some_killed,
    "all-copies": _holders_killed,
    "zone-killed": _zone_killed,
    "power": _power,
    "one-by-one": _one_by_one,
    "rolling": _rolled,
    "halves": _cut,
    "cut-off": _cut,
    "worker-dies": _worker_dies,
    "worker-slow": _worker_dies,
}


# Duplicates.

_RACES: Final = ("D5",)
_CRASHES: Final = ("D1", "D2", "D3a", "D4", "D5", "D7", "D11", "D12")
_CUTS: Final = ("D1", "D2", "D4", "D5", "D6", "D11", "D12")
_ALONE: Final = ("D1", "D3a")
"""Those that take no second node."""
_CAUSES: Final = {
    "calm": _RACES,
    "halves": _CUTS,
    "cut-off": _CUTS,
    "worker-dies": ("D1", *_RACES),
    "worker-slow": ("D1", *_RACES),
}


def _twice(family: Family, request: JobRequest, facts: Facts) -> tuple[str, ...]:
    if request.retry == 0:
        return ()
    causes = _CAUSES.get(family.name, _CRASHES)
    if not facts.has_lease and "D1" not in causes:
        causes = ("D1", *causes)
    if facts.nodes == 1:
        causes = tuple(cause for cause in causes if cause in _ALONE)
    return causes + _lost_end(family, facts)


def _lost_end(family: Family, facts: Facts) -> tuple[str, ...]:
    """A power cut takes the end of a journal that is not synced for each answer."""
    return ("D8",) if family.name == "power" and facts.journal in {"no", "everysec"} else ()


# How late.


def _late(family: Family, request: JobRequest) -> Millis:
    """A node that takes over, or comes back with its journal, queues the job after a whole RETRY
    (L8, S21)."""
    if family.name in {"calm", "halves", "cut-off"}:
        return MEET
    return request.retry * 1000 + DESYNC + MEET


def remarks(request: JobRequest, facts: Facts) -> Iterator[str]:
    """What holds whatever happens."""
    if request.copies == 1:
        yield "one node holds it"
    elif request.is_async:
        yield f"up to {request.copies} nodes hold it; ASYNC: one when ADDJOB returns"
    elif request.confirmed < request.copies:
        confirmed = f"{request.confirmed} of {request.copies} nodes"
        yield f"{confirmed} confirm it before ADDJOB returns; the rest follow (SYNC)"
    else:
        yield f"{request.copies} nodes hold it before ADDJOB returns"
    yield from _of_zones(request, facts)
    if request.timeout and request.copies > 1:
        yield f"NOREPL after {_seconds(request.timeout)} without them; a replica may remain (D12)"
    if request.delay:
        yield f"it is delivered {_seconds(request.delay)} after ADDJOB, not earlier (S6)"
    yield f"it expires after {request.ttl:,} s, acknowledged or not (TTL)"
    yield from _of_retry(request, facts)
    if limit := request.extensions.limit:
        deliveries = counted(limit, "delivery", "deliveries")
        yield f"after {deliveries} without an ACKJOB it is dead, and kept (S26)"
    if request.extensions.backoff:
        first = _seconds(request.extensions.backoff)
        yield f"its first NACK delays it by {first}; each further one doubles that"
    if request.extensions.key is not None:
        yield "one job has its key in a connected cluster (S24); in a partition two may (K1)"
    if request.maxlen:
        yield f"refused if its queue has {counted(request.maxlen, 'job')} at the node of the ADDJOB"


def _of_zones(request: JobRequest, facts: Facts) -> Iterator[str]:
    zones = len(facts.zone_names)
    if zones < 2 or request.copies == 1:
        return
    if request.copies > zones:
        yield f"its {request.copies} replicas go to {zones} zones, so a zone has several"
    else:
        yield f"its {request.copies} replicas go to {request.copies} of {zones} zones"
    if 1 < request.confirmed < request.copies:
        within = f"{min(request.confirmed, zones)} zones"
        yield f"ADDJOB waits for replicas in {within}, but 50 ms at most"


def _of_retry(request: JobRequest, facts: Facts) -> Iterator[str]:
    if request.retry == 0:
        yield "a worker gets it once; if the worker dies, the job is lost (RETRY 0)"
    elif not request.comes_back:
        yield "it is never redelivered: DELAY and RETRY end after the TTL"
    elif facts.has_lease:
        yield f"a worker has {request.retry:,} s; then, or if it dies, the job is redelivered"
    else:
        yield f"it is redelivered {request.retry:,} s after it was enqueued, whenever it was taken"


def _seconds(span: Millis) -> str:
    return f"{span / 1000:,g} s"


def hints(request: JobRequest, facts: Facts) -> Iterator[str]:
    """What would survive more."""
    if request.retry and not request.is_async and request.copies < facts.nodes:
        more = request.copies + 1
        yield f"REPLICATE {more} survives {request.copies} of {more} nodes at once"
    if facts.zones and len(facts.zone_names) < request.copies:
        yield f"nodes in {request.copies} zones would give each replica its own zone"
    if request.is_async and request.copies > 1:
        yield "without ASYNC all replicas exist when ADDJOB returns"
    if facts.journal == NO_JOURNAL:
        yield "appendonly yes survives a crash of all nodes; with appendfsync always power cuts too"
    elif facts.journal != "always":
        yield "appendfsync always survives power cuts"
    if request.copies > 1 and facts.nodes > 1:
        small = f"a side of a partition with fewer than {request.confirmed} nodes"
        yield f"{small} refuses this ADDJOB (NOREPL)"
    if request.copies == request.confirmed == facts.nodes > 2 and not request.is_async:
        yield f"SYNC {request.copies - 1} accepts jobs while one node is down"
