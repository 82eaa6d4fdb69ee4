"""Rules: what is said of a job without a trial, each with the property on which it rests."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from disque_trio.explain.asked import Asked
from disque_trio.explain.facts import NO_JOURNAL, Facts
from disque_trio.explain.families import Family, applying
from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.job import DESYNC

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
    """What the rules say of a job and one family of faults."""

    family: str
    title: str
    loss: Loss
    twice: tuple[str, ...]
    """Causes of duplicates that may occur; none: it comes at most once."""
    late: Millis | None
    """How long after its due time, or the end of a cut, a job that waits comes at the latest, if
    workers wait at each node. None where it may be lost."""


def answers(asked: Asked, facts: Facts) -> list[Answer]:
    """The answer for each family that applies; none if the job is refused."""
    if refusal(asked, facts):
        return []
    return [_answer(family, asked, facts) for family in applying(asked, facts)]


def refusal(asked: Asked, facts: Facts) -> str:
    """Why ADDJOB is refused now; empty if it is not."""
    able = facts.nodes - facts.originals * asked.is_ours
    if asked.confirmed > able:
        few = f"{able} of {facts.nodes} nodes can hold it"
        return f"NOREPL: it needs {asked.confirmed} replicas; {few}"
    return ""


def _answer(family: Family, asked: Asked, facts: Facts) -> Answer:
    loss = _LOSSES[family.name](asked, facts)
    if loss.lost == NO and not asked.comes_back and family.name != "calm":
        loss = _NEVER_BACK if asked.retry else _ONCE
    late = None if loss.lost != NO else _late(family, asked)
    return Answer(
        family=family.name,
        title=family.title,
        loss=loss,
        twice=_twice(family, asked, facts),
        late=late,
    )


_ONCE: Final = Loss(MAY, "RETRY 0: it is delivered once or never (S5)")
_NEVER_BACK: Final = Loss(MAY, "it would be redelivered only after its TTL")


# Losses, by family.


def _none(_asked: Asked, _facts: Facts) -> Loss:
    return Loss(NO, "no replica is lost (S2)")


def _cut(asked: Asked, _facts: Facts) -> Loss:
    return Loss(
        NO, "no replica is lost, and each side continues (L5)" if asked.copies == 1 else _SIDES
    )


_SIDES: Final = "no replica is lost; a side with one delivers it (L1)"


def _some_killed(asked: Asked, facts: Facts) -> Loss:
    """Fewer nodes than there are copies."""
    if facts.journal != NO_JOURNAL:
        return _JOURNAL
    if asked.copies == 1:
        return Loss(MAY, "its node has the only replica, in memory")
    if asked.is_async:
        return Loss(MAY, "ASYNC: at first only one node has a replica")
    return Loss(NO, f"one of {asked.copies} replicas survives and is enqueued (S1)")


_JOURNAL: Final = Loss(NO, "the journal restores it (S15)")


def _holders_killed(asked: Asked, facts: Facts) -> Loss:
    if facts.journal != NO_JOURNAL:
        return _JOURNAL
    if asked.copies >= facts.nodes:
        return Loss(YES, "no other node has a replica, and there is no journal")
    return Loss(MAY, "lost if exactly its holders are killed: there is no journal")


def _zone_killed(asked: Asked, facts: Facts) -> Loss:
    if facts.journal != NO_JOURNAL or asked.copies == 1 or asked.is_async:
        return _some_killed(asked, facts)
    if asked.is_ours and facts.originals:
        return Loss(MAY, "the nodes that can hold it may be in one zone")
    if asked.confirmed > max(Counter(facts.zones).values()):
        return Loss(NO, "more nodes confirm it than any zone has (S1)")
    if asked.confirmed < asked.copies:
        return Loss(MAY, "ADDJOB waits at most 50 ms for a replica in another zone")
    return Loss(NO, "a node of another zone has a replica (S30, S31)")


def _power(_asked: Asked, facts: Facts) -> Loss:
    match facts.journal:
        case "always":
            return Loss(NO, "the journal is synced before the reply (S15)")
        case "everysec":
            return Loss(MAY, "the last second is not synced; older jobs are restored (S15)")
        case "no":
            return Loss(MAY, "data that the system has not written is lost")
        case _:
            return Loss(YES, "there is no journal")


def _one_by_one(asked: Asked, facts: Facts) -> Loss:
    if facts.journal == NO_JOURNAL and asked.is_async:
        return _some_killed(asked, facts)
    return Loss(NO, "its replica is re-created before the others fail (L7)")


def _rolled(_asked: Asked, facts: Facts) -> Loss:
    if facts.journal != NO_JOURNAL:
        return Loss(NO, "each node loads its journal (S21)")
    return Loss(YES, "each node restarts empty, and no other node detects it")


def _worker_dies(asked: Asked, _facts: Facts) -> Loss:
    if limit := asked.extensions.limit:
        return Loss(NO, f"it is redelivered after RETRY; after {limit} deliveries it is dead")
    return Loss(NO, "it is redelivered after RETRY (L2)")


_LOSSES: Final[dict[str, Callable[[Asked, Facts], Loss]]] = {
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


def _twice(family: Family, asked: Asked, facts: Facts) -> tuple[str, ...]:
    if asked.retry == 0:
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


def _late(family: Family, asked: Asked) -> Millis:
    """A node that takes over, or comes back with its journal, queues the job after a whole RETRY
    (L8, S21)."""
    if family.name in {"calm", "halves", "cut-off"}:
        return MEET
    return asked.retry * 1000 + DESYNC + MEET


def remarks(asked: Asked, facts: Facts) -> Iterator[str]:
    """What holds whatever happens."""
    if asked.copies == 1:
        yield "one node holds it"
    elif asked.is_async:
        yield f"up to {asked.copies} nodes hold it; ASYNC: one when ADDJOB returns"
    elif asked.confirmed < asked.copies:
        confirmed = f"{asked.confirmed} of {asked.copies} nodes"
        yield f"{confirmed} confirm it before ADDJOB returns; the rest follow (SYNC)"
    else:
        yield f"{asked.copies} nodes hold it before ADDJOB returns"
    yield from _of_zones(asked, facts)
    if asked.timeout and asked.copies > 1:
        yield f"NOREPL after {_seconds(asked.timeout)} without them; a replica may remain (D12)"
    if asked.delay:
        yield f"it is delivered {_seconds(asked.delay)} after ADDJOB, not earlier (S6)"
    yield f"it expires after {asked.ttl:,} s, done or not (TTL)"
    yield from _of_retry(asked, facts)
    if limit := asked.extensions.limit:
        yield f"after {limit} deliveries without an ACKJOB it is dead, and kept (S26)"
    if asked.extensions.backoff:
        first = _seconds(asked.extensions.backoff)
        yield f"its first NACK delays it by {first}; each further one doubles that"
    if asked.extensions.key is not None:
        yield "one job has its key in a connected cluster (S24); in a partition two may (K1)"
    if asked.maxlen:
        yield f"refused if its queue has {asked.maxlen:,} jobs at the node of the ADDJOB"


def _of_zones(asked: Asked, facts: Facts) -> Iterator[str]:
    zones = len(facts.zone_names)
    if zones < 2 or asked.copies == 1:
        return
    if asked.copies > zones:
        yield f"its {asked.copies} replicas go to {zones} zones, so a zone has several"
    else:
        yield f"its {asked.copies} replicas go to {asked.copies} of {zones} zones"
    if 1 < asked.confirmed < asked.copies:
        within = f"{min(asked.confirmed, zones)} zones"
        yield f"ADDJOB waits for replicas in {within}, but 50 ms at most"


def _of_retry(asked: Asked, facts: Facts) -> Iterator[str]:
    if asked.retry == 0:
        yield "a worker gets it once; if the worker dies, the job is lost (RETRY 0)"
    elif not asked.comes_back:
        yield "it is never redelivered: DELAY and RETRY end after the TTL"
    elif facts.has_lease:
        yield f"a worker has {asked.retry:,} s; then, or if it dies, the job is redelivered"
    else:
        yield f"it is redelivered {asked.retry:,} s after it was enqueued, whenever it was taken"


def _seconds(span: Millis) -> str:
    return f"{span / 1000:,g} s"


def hints(asked: Asked, facts: Facts) -> Iterator[str]:
    """What would survive more."""
    if asked.retry and not asked.is_async and asked.copies < facts.nodes:
        more = asked.copies + 1
        yield f"REPLICATE {more} survives {asked.copies} of {more} nodes at once"
    if facts.zones and len(facts.zone_names) < asked.copies:
        yield f"nodes in {asked.copies} zones would give each replica its own zone"
    if asked.is_async and asked.copies > 1:
        yield "without ASYNC all replicas exist when ADDJOB returns"
    if facts.journal == NO_JOURNAL:
        yield "appendonly yes survives a crash of all nodes; with appendfsync always power cuts too"
    elif facts.journal != "always":
        yield "appendfsync always survives power cuts"
    if asked.copies > 1 and facts.nodes > 1:
        small = f"a side of a partition with fewer than {asked.confirmed} nodes"
        yield f"{small} refuses this ADDJOB (NOREPL)"
    if asked.copies == asked.confirmed == facts.nodes > 2 and not asked.is_async:
        yield f"SYNC {asked.copies - 1} accepts jobs while one node is down"
