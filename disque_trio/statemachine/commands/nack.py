"""NACK: a worker returns jobs as failed. They are requeued, at once or after DELAY; DEAD buries
them instead. ERROR gives the cause, which is kept with the jobs.

Sets `NodeState.begun`.
"""

from collections.abc import Callable, Container, Generator
from typing import Final

import attrs

from disque_trio.statemachine import counts, deadletters, joberrors, longcommands, postponing
from disque_trio.statemachine.base import (
    ACTIVE,
    QUEUED,
    SYNTAX_ERROR,
    CommandError,
    Millis,
    Reply,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commandoptions import NACK, usage
from disque_trio.statemachine.commands.addjob import NO_PLACE
from disque_trio.statemachine.commands.jobs import end_deliveries, give_back, held, named
from disque_trio.statemachine.commands.parse import Words, once, read_value
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.suggestions import no_option, shown

_LONGEST: Final = max(map(len, NACK))


@attrs.define
class _Options:
    """The options of NACK; None if not given."""

    delay: Millis | None = None
    dead: bytes | None = None
    """The reason after DEAD; empty if there is none."""
    error: bytes | None = None


def nack(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """NACK. The reply is the number of jobs that were returned. Excludes jobs that are queued or
    postponed already, and those with a token that is no longer valid."""
    at = end_of_ids(args, NACK, f"NACK id {usage(NACK)}".encode())
    options = _parse(node, args[at:])
    steps = give_back_all(node, args, at, lambda job: _give(node, job, options), options.delay or 0)
    return longcommands.run(node, client, _counted(node, steps))


def _parse(node: NodeState, words: list[bytes]) -> _Options:
    options = _Options()
    at = 0
    while at < len(words):
        option = NACK.get(words[at].upper())
        if option is None and options.dead is not None:
            raise CommandError(
                SYNTAX_ERROR + b": the reason behind DEAD is one word, quoted if it has spaces: %b"
                b" is another one" % shown(words[at])
            )
        if option is None:
            raise CommandError(SYNTAX_ERROR + b": " + no_option(words[at], b"NACK", NACK))
        once(getattr(options, option.name), option.word)
        value = words[at + 1 : at + 2]
        at += 2
        if option.name == "dead" and (not value or (value[0].upper() in NACK and at < len(words))):
            at, value = at - 1, [b""]  # no reason, but an option with its value
        setattr(options, option.name, read_value(option, Words(value)))
    if options.dead is not None and options.delay is not None:
        raise CommandError(SYNTAX_ERROR + b": DELAY and DEAD exclude each other")
    if options.dead is not None and not node.keeps_extensions:
        raise CommandError(NO_PLACE)
    return options


def _give(node: NodeState, job: Job, options: _Options) -> bool:
    """Return one job. The error is set first, so that the records of the job include it."""
    is_noted = bool(options.error) and _may_be_given_back(job, options)
    if is_noted:
        joberrors.note(node, job, options.error or b"")
    if options.dead is not None:
        is_returned = deadletters.nack(node, job, options.dead)
    else:
        is_returned = _nack(node, job, options.delay)
    if is_noted:
        joberrors.announce(node, job)
    return is_returned


def _may_be_given_back(job: Job, options: _Options) -> bool:
    if options.dead is not None:
        return job.state in (ACTIVE, QUEUED)
    return not _is_given_back(job)


def _counted(node: NodeState, steps: Generator[None, None, int]) -> longcommands.Steps:
    count = yield from steps
    return counts.nacked(node, count)


def give_back_all(
    node: NodeState,
    args: list[bytes],
    at: int,
    give: Callable[[Job], bool],
    delay: Millis = 0,
    flags: int | None = None,
) -> Generator[None, None, int]:
    """Call `give` for the jobs with the ids in `args[1:at]` that have one of these flags, except
    those with a token that is no longer valid. Returns how often it returned True. Raises
    CommandError before any change if a job cannot be delayed by `delay` ms."""
    deliveries = yield from named(node, args[1:at])
    parts = longcommands.parts(node, deliveries)
    for number, each in enumerate(parts if delay else ()):
        if number:
            yield
        for job in held(node, each, flags):
            check_life(node, job, delay)
    node.begun = args
    count = 0
    for number, each in enumerate(parts):
        if number:
            yield
        count += sum([give(job) for job in held(node, each, flags)])
        end_deliveries(node, each)
    return count


def end_of_ids(args: list[bytes], options: Container[bytes], usage: bytes) -> int:
    """The index of the first option. Raises CommandError if no id precedes it."""
    if len(args) < 3 and (len(args) < 2 or len(args[1]) > _LONGEST):
        return len(args)
    at = next((at for at, word in enumerate(args) if word.upper() in options), len(args))
    if at == 1 < len(args):
        raise CommandError(
            SYNTAX_ERROR + b": %b has no job ids before it: %b" % (args[1].upper(), usage)
        )
    return at


def _is_given_back(job: Job) -> bool:
    """Is the job not active, or postponed already, so that there is nothing to return?"""
    return job.state != ACTIVE or postponing.is_postponed(job)


def check_life(node: NodeState, job: Job, delay: Millis) -> None:
    """Raise CommandError if the job would expire before the delay ends, or if a holder does not
    support such a long delay."""
    left = job.expires - node.mono
    if not job.retry or _is_given_back(job):
        return
    if delay > postponing.SHORT and (holder := postponing.unable(node, job)) is not None:
        raise CommandError(
            b"ERR DELAY is longer than the %d seconds that node %b can count, which has a copy of"
            b" %b: upgrade that node, or use a shorter DELAY"
            % (postponing.SHORT // 1000, holder, job.id)
        )
    if delay >= left:
        raise CommandError(
            b"ERR DELAY is longer than the life of %b, which would expire before it is queued"
            b" again: DELAY is %d ms, its TTL ends in %d ms" % (job.id, delay, max(left, 0))
        )


def _nack(node: NodeState, job: Job, delay: Millis | None) -> bool:
    """Requeue an active job, at once or after a delay. A job with RETRY 0 cannot be postponed: if
    it was delivered, it is never requeued; if not, it keeps the delay of its ADDJOB. If this is the
    last try, the job is buried at once."""
    if _is_given_back(job):
        return False
    wait = postponing.backoff(node, job) if delay is None else delay
    if not wait or deadletters.is_last_try(job):
        return give_back(node, job, Cause.NACK)
    if not job.retry:
        return False
    postponing.postpone(node, job, wait, Cause.NACK)
    return True
