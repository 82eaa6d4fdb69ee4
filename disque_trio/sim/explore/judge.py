"""What must hold in every world of a scope.

Every property here concerns one node, or, once it holds, holds forever. So a violation is found
however independent events are ordered (docs/exploring.md, "What is checked").
"""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import attrs

from disque_trio.sim.explore.machines import Fate, Letter, Local
from disque_trio.sim.explore.scope import NAMES, Job, Scope
from disque_trio.statemachine.base import ACKED, JobId, Reply, Status
from disque_trio.statemachine.messages import JobsMessage

_ENDS: Final = (b"ACKJOB", b"FASTACK", b"DELJOB")


@attrs.frozen
class Life:
    """The effects of clients and faults on a job."""

    added: bool = False
    """The reply to its ADDJOB contained its id."""
    taken: int = 0
    """The number of its deliveries, up to 3."""
    acked: tuple[int, ...] = ()
    """The nodes to which clients have acknowledged it, and that have the ack."""
    done: bool = False
    """A client has ended it."""
    over: bool = False
    """No node can deliver it any more."""
    lost: int = 0
    """The number of its copies that faults have destroyed, up to 4."""

    def exchanged(self, order: Sequence[int]) -> "Life":
        """Return the life with the nodes in another order."""
        return attrs.evolve(self, acked=tuple(sorted([order[place] for place in self.acked])))


class Rules(Protocol):
    """The part of `world.Rules` that is used here."""

    scope: Scope
    ids: tuple[JobId, ...]
    numbers: dict[JobId, int]


class Change(Protocol):
    """The part of `world.Change` that is judged."""

    nodes: list[Local]
    up: list[bool]
    gone: list[bool]
    letters: list[tuple[Letter, ...]]
    lives: list[Life]
    broken: str


def asked(rules: Rules, change: Change, place: int, words: tuple[bytes, ...]) -> None:
    """Record a request that a client is about to send."""
    if words[0] in _ENDS:
        for id in words[1:]:
            if id in rules.numbers:
                _end(rules, change, rules.numbers[id], place, is_ack=words[0] != b"DELJOB")
    elif words[0] in (b"PURGE", b"CANCEL"):
        for number, job in enumerate(rules.scope.jobs):
            if words[0] == b"PURGE" or job.key.encode() in words:
                change.lives[number] = attrs.evolve(change.lives[number], done=True)


def _end(rules: Rules, change: Change, number: int, place: int, *, is_ack: bool) -> None:
    life = change.lives[number]
    fate = change.nodes[place].fates.get(rules.ids[number])
    knows = is_ack and (fate is not None or rules.scope.jobs[number].retry_s > 0)
    acked = tuple(sorted({*life.acked, place})) if knows else life.acked
    change.lives[number] = attrs.evolve(life, acked=acked, done=True)


def added(rules: Rules, change: Change, job: Job, reply: Reply) -> None:
    """Record the reply to an ADDJOB, which may contain the id of another job with its key."""
    if isinstance(reply, Status) and reply.text == rules.ids[job.number]:
        life = change.lives[job.number]
        change.lives[job.number] = attrs.evolve(life, added=True)


def served(rules: Rules, change: Change, place: int, reply: Reply) -> JobId:
    """Record the deliveries in a reply, if it is one to GETJOB. Return the id of the last job."""
    last = b""
    for each in reply if isinstance(reply, list) else ():
        if not (isinstance(each, list) and len(each) >= 3 and each[1] in rules.numbers):
            continue
        last = each[1]
        number = rules.numbers[last]
        life, job = change.lives[number], rules.scope.jobs[number]
        if life.taken and not job.retry_s:
            _break(change, f"{job.name} has RETRY 0 and is delivered again by {NAMES[place]}")
        if place in life.acked:
            _break(change, f"{job.name} was acknowledged to {NAMES[place]}, which delivers it")
        if life.over:
            _break(change, f"{job.name} is delivered by {NAMES[place]} after its end")
        change.lives[number] = attrs.evolve(life, taken=min(life.taken + 1, 3))
    return last


def taken(rules: Rules, change: Change) -> None:
    """Report a violation if clients have received more than `most_taken` deliveries."""
    most, count = rules.scope.most_taken, sum([life.taken for life in change.lives])
    if most and count > most:
        _break(change, f"{count} deliveries, where there may be {most}")


def _break(change: Change, text: str) -> None:
    change.broken = change.broken or text


def crashed(rules: Rules, change: Change, place: int) -> None:
    """Record that a node loses its memory, and maybe its disk."""
    forgets = change.gone[place] or not rules.scope.journal
    for number, life in enumerate(change.lives):
        fate = change.nodes[place].fates.get(rules.ids[number])
        is_acked = fate is not None and fate.state == ACKED
        had_copy = fate is not None and not fate.is_dummy and not is_acked
        acked = life.acked
        if forgets or not is_acked:
            acked = tuple([each for each in acked if each != place])
        lost = min(life.lost + (forgets and had_copy), 4)
        change.lives[number] = attrs.evolve(life, acked=acked, lost=lost)


def follow(rules: Rules, change: Change) -> list[Life]:
    """Return the lives after a change, with the consequences of the states of all nodes."""
    return [_followed(rules, change, number) for number in range(len(change.lives))]


def _followed(rules: Rules, change: Change, number: int) -> Life:
    life, id, job = change.lives[number], rules.ids[number], rules.scope.jobs[number]
    must_be = life.added and job.retry_s and not life.done and life.lost < job.replicate
    if not must_be and (life.over or not life.done):
        return life
    fates = [fate for fate in fates_of(rules, change, id) if not fate.is_dummy]
    is_carried = _is_carried(change, id)
    is_done = life.done
    if must_be and not fates and not is_carried:
        if not _has_heir(rules, change, job):
            _break(change, f"{job.name} is lost")
        is_done = True
    is_over = is_done and not is_carried and all(fate.state == ACKED for fate in fates)
    return attrs.evolve(life, done=is_done, over=is_over)


def fates_of(rules: Rules, change: Change, id: JobId) -> Iterator[Fate]:
    """Yield the records of a job on all nodes, including nodes that are down and have it on
    disk."""
    for place, local in enumerate(change.nodes):
        is_there = change.up[place] or (rules.scope.journal and not change.gone[place])
        if is_there and id in local.fates:
            yield local.fates[id]


def _is_carried(change: Change, id: JobId) -> bool:
    """Is a copy of the job in transit?"""
    return any(
        isinstance(letter.message, JobsMessage)
        and any(copy.id == id for copy in letter.message.copies)
        for letters in change.letters
        for letter in letters
    )


def _has_heir(rules: Rules, change: Change, job: Job) -> bool:
    """Did the job yield to another one with its key?"""
    others = [each for each in rules.scope.jobs if each.key == job.key and each is not job]
    return bool(job.key) and any(
        change.lives[other.number].added or any(fates_of(rules, change, rules.ids[other.number]))
        for other in others
    )
