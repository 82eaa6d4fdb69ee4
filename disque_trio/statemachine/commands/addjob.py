"""ADDJOB (reference 2.2): what is asked, whether it can be, and the new job."""

from typing import Final

import attrs

from disque_trio.statemachine import lifecycle, replication
from disque_trio.statemachine.base import (
    PENDING,
    SYNTAX_ERROR,
    CommandError,
    Millis,
    Reply,
    Status,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands.parse import Words, at_least, timeout
from disque_trio.statemachine.job import Job, make_id
from disque_trio.statemachine.state import NodeState

DEFAULT_TTL_S: Final = 86_400
MAX_DEFAULT_RETRY_S: Final = 300
MAX_PERIOD_S: Final = (1 << 31) // 1000
"""What every holder, an original one too, can count in 32-bit milliseconds. A longer RETRY is cut
to this; a longer DELAY is refused, for it would end early."""
_MAX_REPLICAS: Final = 65_535
_I_LEAVE: Final = (
    b", since I'm unable to hold a copy of the message for the following reason: "
    b"I'm leaving the cluster"
)


@attrs.define
class Options:
    """What the words after the timeout say; None where they say nothing. Seconds."""

    replicas: int | None = None
    delay: int = 0
    retry: int | None = None
    ttl: int = DEFAULT_TTL_S
    maxlen: int | None = None
    is_async: bool = False


_DEFAULTS: Final = Options()
_DEFAULT_PERIODS: Final = (DEFAULT_TTL_S, MAX_DEFAULT_RETRY_S, 0)
_LAST_WALL_FOR_DEFAULTS: Final[Millis] = ((1 << 32) - 1 - DEFAULT_TTL_S) * 1000


def addjob(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """Add a job; the reply is its id, at once or when enough nodes hold it.

    A node that keeps no copy waits for those of others even with ASYNC, or nobody might have it.
    """
    options = parse_options(args[4:]) if len(args) > 4 else _DEFAULTS
    wait = timeout(args[3])
    replicas = options.replicas or min(3, node.cluster.size)
    external = replication.is_external(node, replicas, is_async=options.is_async)
    _check(node, args[1], options, replicas, external=external)
    job = _make(node, args[1], args[2], options, replicas, external=external)
    if not external and (options.is_async or replicas == 1):
        replication.add(node, job, blocking=None, deadline=0)
        return Status(job.id)
    deadline = node.mono + wait if wait else 0
    replication.add(node, job, blocking=client, deadline=deadline)
    return PENDING


def parse_options(words: list[bytes]) -> Options:
    """The options in any order and case; the last of each wins."""
    options = Options()
    left = Words(words)
    for word in left:
        name = word.upper()
        if name == b"ASYNC":
            options.is_async = True
        elif name in _NUMBERS:
            field, least, error = _NUMBERS[name]
            setattr(options, field, at_least(left.value(), least, error))
            if options.replicas is not None and options.replicas > _MAX_REPLICAS:
                raise CommandError(_NUMBERS[b"REPLICATE"][2])
        else:
            raise CommandError(SYNTAX_ERROR)
    return options


_NUMBERS: Final[dict[bytes, tuple[str, int, bytes]]] = {
    b"REPLICATE": ("replicas", 1, b"ERR REPLICATE must be between 1 and 65535"),
    b"TTL": ("ttl", 1, b"ERR TTL must be a number > 0"),
    b"RETRY": ("retry", 0, b"ERR RETRY time must be a non negative number"),
    b"DELAY": ("delay", 0, b"ERR DELAY time must be a non negative number"),
    b"MAXLEN": ("maxlen", 1, b"ERR MAXLEN must be a positive number"),
}


def _check(
    node: NodeState, name: bytes, options: Options, replicas: int, *, external: bool
) -> None:
    """The refusals, in the original's order."""
    if options.retry == 0 and replicas > 1:
        raise CommandError(
            b"ERR With RETRY set to 0 please explicitly set  REPLICATE to 1 (at-most-once delivery)"
        )
    if options.delay >= options.ttl:
        raise CommandError(
            b"ERR The specified DELAY is greater than TTL. "
            b"Job refused since would never be delivered"
        )
    if options.delay > MAX_PERIOD_S:
        raise CommandError(b"ERR DELAY must be at most %d seconds" % MAX_PERIOD_S)
    _check_nodes(node, replicas, external=external)
    queue = node.queues.get(name)
    if queue is not None and options.maxlen is not None and len(queue) >= options.maxlen:
        raise CommandError(b"MAXLEN Queue is already longer than the specified MAXLEN count")
    if lifecycle.is_paused_in(node, name):
        raise CommandError(b"PAUSED Queue paused in input, try later")


def _check_nodes(node: NodeState, replicas: int, *, external: bool) -> None:
    if replicas == 1 and not external:
        return
    needed = replicas if external else replicas - 1
    reachable = len(node.cluster.reachable)
    if needed > reachable:
        raise CommandError(
            replication.NOT_ENOUGH_NODES
            + (_I_LEAVE if external and needed == reachable + 1 else b"")
        )


def _make(
    node: NodeState,
    name: bytes,
    body: bytes,
    options: Options,
    replicas: int,
    *,
    external: bool,
) -> Job:
    if options is _DEFAULTS and node.wall < _LAST_WALL_FOR_DEFAULTS:
        ttl, retry, delay = _DEFAULT_PERIODS
    else:
        ttl, retry, delay = _periods(node, options)
    myself = node.cluster.myself
    mono = node.mono
    return Job(
        make_id(myself.id, node.rng.getrandbits(144), ttl, at_least_once=retry > 0),
        name,
        body,
        replicas,
        replication.next_ctime(node),
        mono + ttl * 1000,
        delay * 1000,
        retry * 1000,
        () if external else myself.holding,
        requeue_at=mono + (delay or retry) * 1000 or 1,
    )


def _periods(node: NodeState, options: Options) -> tuple[int, int, int]:
    """TTL, RETRY and DELAY in seconds, the first two as far as they can be counted (defect 3)."""
    ttl = min(options.ttl, max_ttl(node))
    retry = options.retry
    if retry is None:
        retry = min(max(ttl // 10, 1), MAX_DEFAULT_RETRY_S)
    return ttl, min(retry, MAX_PERIOD_S), options.delay


def max_ttl(node: NodeState) -> int:
    """The TTL in seconds with which a job expires just before Unix seconds outgrow 32 bits."""
    return max((1 << 32) - 1 - node.wall // 1000, 1)
