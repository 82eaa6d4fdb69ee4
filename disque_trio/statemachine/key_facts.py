"""Facts about jobs that have or had a key, and conclusions from them (decision 70).

Several nodes report a `KeyFact` about a job, at different times. Facts can be joined in any order
and any number of times (`joined`).
"""

from collections.abc import Iterable
from typing import Final

import attrs

from disque_trio.statemachine.base import JobId, Millis

MAX_KEY: Final = 256

# The state of a job with the key at a node: the greatest of several reports applies.

MOVED: Final = 1
"""It was here until recently, and has moved to another node."""
HELD: Final = 2
"""It is here."""
PENDING: Final = 3
"""Its ADDJOB waits here, for the key or for copies. Only the node of the ADDJOB reports that."""
ENDED: Final = 4
"""It is acknowledged (the state is `DONE_KEPT`), or it is gone for any reason."""
KEPT: Final = 5
"""It has ended, and its key stays reserved for a while."""
KEY_WORDS: Final = (MOVED, HELD, PENDING, ENDED, KEPT)

# When a KEYCANCEL applies.

ALWAYS: Final = 0
UNLESS_TAKEN: Final = 1
"""Only at a node that must deliver the job and has not done so."""
UNLESS_KNOWN_AS_TAKEN: Final = 2
"""Unless the job was delivered, according to the node."""
CANCELS: Final = (ALWAYS, UNLESS_TAKEN, UNLESS_KNOWN_AS_TAKEN)

# The states of a job in replies. The greater number has more information, and applies.

WAITING: Final = 0
BACKING_OFF: Final = 1
WITH_WORKER: Final = 2
IN_QUEUE: Final = 3
DEAD: Final = 4
DONE_KEPT: Final = 5
KEY_STATES: Final = (b"waiting", b"backing-off", b"with-worker", b"queued", b"dead", b"done-kept")

# Flags of a job, which are joined by "or".

GIVEN_OUT: Final = 1
"""It was delivered, according to the node."""
HELD_BACK: Final = 2
"""It is not enqueued before the earlier jobs with its key have ended (IFEXISTS again and
replace)."""
KEY_MARKS: Final = GIVEN_OUT | HELD_BACK


@attrs.frozen
class KeyFact:
    """A node's fact about a job that has or had the key."""

    id: JobId
    stamp: int
    word: int
    state: int
    keep: Millis
    """How long the key stays reserved when the job has ended."""
    marks: int = 0


def joined(one: KeyFact, other: KeyFact) -> KeyFact:
    """Join the facts of two nodes about one job."""
    if one == other:
        return one
    return KeyFact(
        one.id,
        max(one.stamp, other.stamp),
        max(one.word, other.word),
        max(one.state, other.state),
        max(one.keep, other.keep),
        one.marks | other.marks,
    )


def join(answers: Iterable[Iterable[KeyFact]]) -> dict[JobId, KeyFact]:
    """The joined facts, by job."""
    known: dict[JobId, KeyFact] = {}
    for facts in answers:
        for fact in facts:
            before = known.get(fact.id)
            known[fact.id] = fact if before is None else joined(before, fact)
    return known


def holder_of_key(known: dict[JobId, KeyFact]) -> KeyFact | None:
    """The job that has the key: the earliest live job, otherwise the earliest ended job that keeps
    it."""
    live = _living(known)
    if live:
        return min(live, key=_age)
    kept = [fact for fact in known.values() if _is_kept(fact)]
    return min(kept, key=_age) if kept else None


def awaits_turn(known: dict[JobId, KeyFact]) -> KeyFact | None:
    """The earliest job that waits until the job with the key has ended; None if there is none."""
    waiting = [fact for fact in _living(known) if fact.marks & HELD_BACK and _is_untaken(fact)]
    return min(waiting, key=_age) if waiting else None


def wants_again(known: dict[JobId, KeyFact]) -> bool:
    """IFEXISTS again: is the job with the key leased, and does no other job wait for its end
    yet?"""
    taken = holder_of_key(known)
    is_taken = taken is not None and taken.word == HELD and taken.state == WITH_WORKER
    return is_taken and awaits_turn(known) is None


def wants_replaced(known: dict[JobId, KeyFact]) -> bool:
    """IFEXISTS replace: was the latest live job with the key never delivered?"""
    live = _living(known)
    return bool(live) and _is_untaken(max(live, key=_age))


def _living(known: dict[JobId, KeyFact]) -> list[KeyFact]:
    return [fact for fact in known.values() if fact.word == HELD]


def _is_untaken(fact: KeyFact) -> bool:
    return not fact.marks & GIVEN_OUT and fact.state in (WAITING, IN_QUEUE)


def latest_stamp(known: dict[JobId, KeyFact]) -> int:
    """The greatest creation stamp of the live jobs; 0 if there is none."""
    return max([fact.stamp for fact in _living(known)], default=0)


def is_earlier(fact: KeyFact, stamp: int, job_id: JobId) -> bool:
    """Was the job added before the job with this creation stamp and id? The order is the same at
    all nodes."""
    return (fact.stamp, fact.id) < (stamp, job_id)


def is_live(fact: KeyFact) -> bool:
    """Does the job exist, possibly with an ADDJOB that still waits?"""
    return fact.word in (HELD, PENDING)


def is_undecided(known: dict[JobId, KeyFact]) -> bool:
    """Do the facts include an ADDJOB that waits, or a job that is moving between nodes?"""
    return any(fact.word in (PENDING, MOVED) for fact in known.values())


def _is_kept(fact: KeyFact) -> bool:
    """Has the job ended and does its key stay reserved? One node may report the acknowledgement,
    another the time that the key is kept. If the job is only reported as gone, its ADDJOB may have
    failed, so its id must not be returned."""
    is_acked = fact.word == ENDED and fact.state == DONE_KEPT
    return fact.word == KEPT or (is_acked and fact.keep > 0)


def _age(fact: KeyFact) -> tuple[int, JobId]:
    return fact.stamp, fact.id
