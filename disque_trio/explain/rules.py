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
        few = f"{able} of {facts.nodes} nodes can keep it"
        return f"NOREPL: it asks for {asked.confirmed} copies; {few}"
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
_NEVER_BACK: Final = Loss(MAY, "it would come back only when its TTL is over")


# Losses, by family.


def _none(_asked: Asked, _facts: Facts) -> Loss:
    return Loss(NO, "no copy is lost (S2)")


def _cut(asked: Asked, _facts: Facts) -> Loss:
    return Loss(NO, "no copy is lost, and each side goes on (L5)" if asked.copies == 1 else _SIDES)


_SIDES: Final = "no copy is lost; a side with a copy delivers it (L1)"


def _some_killed(asked: Asked, facts: Facts) -> Loss:
    """Fewer nodes than there are copies."""
    if facts.journal != NO_JOURNAL:
        return _JOURNAL
    if asked.copies == 1:
        return Loss(MAY, "its node has the only copy, in memory")
    if asked.is_async:
        return Loss(MAY, "ASYNC: until another node has a copy, the first one has the only one")
    return Loss(NO, f"one of {asked.copies} copies is left, and is queued (S1)")


_JOURNAL: Final = Loss(NO, "the journal brings it back (S15)")


def _holders_killed(asked: Asked, facts: Facts) -> Loss:
    if facts.journal != NO_JOURNAL:
        return _JOURNAL
    if asked.copies >= facts.nodes:
        return Loss(YES, "no other node has a copy, and no journal keeps it")
    return Loss(MAY, "lost if exactly its holders are killed: no journal keeps it")


def _zone_killed(asked: Asked, facts: Facts) -> Loss:
    if facts.journal != NO_JOURNAL or asked.copies == 1 or asked.is_async:
        return _some_killed(asked, facts)
    if asked.is_ours and facts.originals:
        return Loss(MAY, "those nodes that can keep it may be in one zone")
    if asked.confirmed > max(Counter(facts.zones).values()):
        return Loss(NO, "more nodes confirm it than any zone has (S1)")
    if asked.confirmed < asked.copies:
        return Loss(MAY, "ADDJOB waits for a copy in another zone for 50 ms at most")
    return Loss(NO, "a node of another zone has a copy (S30, S31)")


def _power(_asked: Asked, facts: Facts) -> Loss:
    match facts.journal:
        case "always":
            return Loss(NO, "the journal is synced before the answer (S15)")
        case "everysec":
            return Loss(MAY, "the last second is not synced; older jobs come back (S15)")
        case "no":
            return Loss(MAY, "what the system has not written yet is lost")
        case _:
            return Loss(YES, "no journal keeps it")


def _one_by_one(asked: Asked, facts: Facts) -> Loss:
    if facts.journal == NO_JOURNAL and asked.is_async:
        return _some_killed(asked, facts)
    return Loss(NO, "the copy of the first is made again before the others go (L7)")


def _rolled(_asked: Asked, facts: Facts) -> Loss:
    if facts.journal != NO_JOURNAL:
        return Loss(NO, "each node loads its journal (S21)")
    return Loss(YES, "each node comes back empty, which no other notices")


def _worker_dies(asked: Asked, _facts: Facts) -> Loss:
    if asked.limit:
        return Loss(NO, f"it comes again after RETRY; after {asked.limit} deliveries it is dead")
    return Loss(NO, "it comes again after RETRY (L2)")


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
        yield "one node keeps it"
    elif asked.is_async:
        yield f"up to {asked.copies} nodes keep it; ASYNC: one when ADDJOB answers"
    elif asked.confirmed < asked.copies:
        confirmed = f"{asked.confirmed} of {asked.copies} nodes"
        yield f"{confirmed} confirm it before ADDJOB answers; the rest follows (SYNC)"
    else:
        yield f"{asked.copies} nodes keep it before ADDJOB answers"
    yield from _of_zones(asked, facts)
    if asked.timeout and asked.copies > 1:
        yield f"NOREPL after {_seconds(asked.timeout)} without them; a copy may remain (D12)"
    if asked.delay:
        yield f"it comes {_seconds(asked.delay)} after ADDJOB, not earlier (S6)"
    yield f"gone after {asked.ttl:,} s, done or not (TTL)"
    yield from _of_retry(asked, facts)
    if asked.limit:
        yield f"after {asked.limit} deliveries without an ACKJOB it is dead, and kept (S26)"
    if asked.backoff:
        yield f"its first NACK makes it wait {_seconds(asked.backoff)}, each further one twice that"
    if asked.unique:
        yield "one job has its key while the cluster is connected (S24); across a cut two may (K1)"
    if asked.maxlen:
        yield f"refused if its queue has {asked.maxlen:,} jobs at the node that is asked"


def _of_zones(asked: Asked, facts: Facts) -> Iterator[str]:
    zones = len(facts.zone_names)
    if zones < 2 or asked.copies == 1:
        return
    if asked.copies > zones:
        yield f"its {asked.copies} copies go to {zones} zones, so a zone has several"
    else:
        yield f"its {asked.copies} copies go to {asked.copies} of {zones} zones"
    if 1 < asked.confirmed < asked.copies:
        within = f"{min(asked.confirmed, zones)} zones"
        yield f"ADDJOB waits for copies in {within}, but 50 ms at most"


def _of_retry(asked: Asked, facts: Facts) -> Iterator[str]:
    if asked.retry == 0:
        yield "a worker gets it once; if it dies, the job is gone (RETRY 0)"
    elif not asked.comes_back:
        yield "it never comes again: DELAY and RETRY end after the TTL"
    elif facts.has_lease:
        yield f"a worker has {asked.retry:,} s; then, or if it dies, the job comes again"
    else:
        yield f"it comes again {asked.retry:,} s after it was queued, even if it was taken later"


def _seconds(span: Millis) -> str:
    return f"{span / 1000:,g} s"


def hints(asked: Asked, facts: Facts) -> Iterator[str]:
    """What would survive more."""
    if asked.retry and not asked.is_async and asked.copies < facts.nodes:
        more = asked.copies + 1
        yield f"REPLICATE {more} survives {asked.copies} of {more} nodes at once"
    if facts.zones and len(facts.zone_names) < asked.copies:
        yield f"nodes in {asked.copies} zones would give each copy a zone of its own"
    if asked.is_async and asked.copies > 1:
        yield "without ASYNC no copy is missing when ADDJOB answers"
    if facts.journal == NO_JOURNAL:
        yield "appendonly yes survives the end of all nodes; with appendfsync always power cuts too"
    elif facts.journal != "always":
        yield "appendfsync always survives power cuts"
    if asked.copies > 1 and facts.nodes > 1:
        small = f"a side of a cut with fewer than {asked.confirmed} nodes"
        yield f"{small} refuses this ADDJOB (NOREPL)"
    if asked.copies == asked.confirmed == facts.nodes > 2 and not asked.is_async:
        yield f"SYNC {asked.copies - 1} takes jobs also while one node is down"
