"""ADDJOB (original 2.2): resolve the options, check them, and make the job.

Sets `NodeState.begun`.
"""

import hashlib
from typing import Any, Final

import attrs

from disque_trio.statemachine import (
    copies,
    counts,
    key_claim,
    lifecycle,
    pending_adds,
    replication,
    shortcuts,
    stamps,
    trace,
)
from disque_trio.statemachine.base import (
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    LEAVING,
    LONGEST_PERIOD_S,
    MAX_INTEGER,
    ORIGINAL_PERIOD_S,
    PAUSE_IN,
    PENDING,
    QUEUED,
    SYNTAX_ERROR,
    CommandError,
    Millis,
    Reply,
    Status,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands.addoptions import NAMES, parse_options
from disque_trio.statemachine.commands.parse import (
    Remembered,
    in_seconds,
    read_text,
    timeout,
)
from disque_trio.statemachine.extensions import Extensions, needs_of
from disque_trio.statemachine.job import Job, id_end, id_with
from disque_trio.statemachine.joboptions import CARRIED, OF_ONE_JOB, Options
from disque_trio.statemachine.keys import RETURN
from disque_trio.statemachine.pausing import PAUSED
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.suggestions import shown

NO_PLACE: Final = (
    b"ERR aof-format disque has no place for the extensions of a job: use aof-format framed"
)
_LONG: Final = b"a DELAY or RETRY of more than %d seconds" % ORIGINAL_PERIOD_S
_NO_PLACE_FOR_LONG: Final = (
    b"ERR aof-format disque has no place for %b: use aof-format framed" % _LONG
)
_EXTENSIONS: Final = b"extensions (%b)" % b", ".join(
    [each.word for each in CARRIED if not each.needs]
)
_OR_LONGER: Final = (
    b", or %d beside an option that the original does not have, such as PRIORITY 0"
    % LONGEST_PERIOD_S
)
_AT_ONCE: Final = BCAST_QUEUED | BCAST_WILLQUEUE
_LEAST: Final = 4
_WAIT: Final = b"ms-timeout, the third word of ADDJOB queue body ms-timeout [options]"
_I_LEAVE: Final = (
    b", since I'm unable to hold a copy of the message for the following reason: "
    b"I'm leaving the cluster"
)


@attrs.frozen
class ResolvedOptions:
    """The options of ADDJOB with defaults applied. Times are in milliseconds."""

    options: Options
    ttl: Millis
    retry: Millis
    delay: Millis
    last_wall: Millis
    """The last wall time at which the job's expiry fits 32-bit Unix seconds."""
    carried: dict[str, Any]
    """The fields of `extensions` that the options set."""
    extensions: Extensions | None
    """None for plain jobs. GROUP and UNIQUE may contain placeholders (`_resolve`)."""
    needs: int
    """The capabilities that a node must have to keep such a job."""
    is_simple: bool
    """The job has no delay, no key and no MAXLEN, and is delivered at least once; with one replica
    it can take the fast path."""
    id_end: bytes
    may_follow: bool
    """May the job be added while earlier ADDJOBs of the client wait for replicas?"""


def addjob(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """Add a job. The reply is its id, at once or when enough nodes hold it.

    A node that keeps no copy waits for the replicas even with ASYNC, because the job might
    otherwise have none.
    """
    try:
        resolved, extensions = _RESOLVED[tuple(args[4:])] if len(args) > 4 else _PLAIN
    except CommandError:
        # If the client omitted the timeout, an option is in its place.
        if args[3].upper() in NAMES:
            raise CommandError(
                SYNTAX_ERROR + b": ms-timeout is missing before %b: ADDJOB queue body ms-timeout"
                b" [options]" % shown(args[3])
            ) from None
        raise
    options = resolved.options
    wait = 0 if args[3] == b"0" else timeout(args[3], _WAIT)
    places = node.cluster.places
    wanted = node.config.default_replicate
    replicas = options.replicate or max(places if places < wanted else wanted, options.sync or 1)
    if replicas == 1 and resolved.is_simple and _may_be_short(node, resolved):
        return _add_alone(node, args, resolved, extensions)
    external = replication.is_external(
        node, replicas, is_async=options.is_async, needs=resolved.needs
    )
    # A node that keeps no copy cannot complete replication in the background.
    sync = replicas if external else options.synced(replicas, node.config.default_sync)
    _check(node, args[1], resolved, replicas, sync, external=external)
    if lifecycle.is_paused_in(node, args[1]):
        raise CommandError(PAUSED)
    if node.wall > resolved.last_wall:
        resolved = _in(options, max_ttl(node))
    job = _make(node, args, resolved, extensions, replicas, external=external)
    node.begun = args
    deadline = node.mono + wait if wait else 0
    if options.unique is not None:
        if_exists = RETURN if options.if_exists is None else options.if_exists
        return key_claim.begin(
            node, client, job, deadline, if_exists=if_exists, is_async=options.is_async, sync=sync
        )
    if not external and (options.is_async or replicas == 1):
        counts.added(node)
        if replicas == 1:
            lifecycle.begin(node, job)
        else:
            replication.add(node, job, blocking=None, deadline=0)
        return Status(job.id)
    replication.add(node, job, blocking=client, deadline=deadline, sync=sync)
    return PENDING


def _may_be_short(node: NodeState, resolved: ResolvedOptions) -> bool:
    """May a job with one replica take the fast path? Memory must suffice, the node must not be
    leaving, and the TTL and extensions must be storable."""
    memory = node.memory
    return (
        memory.held <= memory.soft
        and memory.spillable is None
        and node.wall <= resolved.last_wall
        and not node.cluster.myself.flags & LEAVING
        and (not resolved.needs or node.keeps_extensions)
    )


def _add_alone(
    node: NodeState, args: list[bytes], resolved: ResolvedOptions, extensions: Extensions | None
) -> Reply:
    """Add an at-least-once job whose only replica is here, after all checks."""
    body = args[2]
    queue = lifecycle.queue_for(node, args[1])
    if queue.paused & PAUSE_IN:
        raise CommandError(PAUSED)
    mono, timers, myself = node.mono, node.timers, node.cluster.myself
    made, number = stamps.next_stamp(node)
    job_id = id_with(myself.id_start, node.rng.getrandbits(144), resolved.id_end)
    job = Job(
        job_id,
        queue.name,
        body,
        1,
        made,
        number,
        timers.shared(mono + resolved.ttl),
        0,
        resolved.retry,
        myself.holding,
        timers.shared(mono + resolved.retry + lifecycle.desync(node)),
        None,
        QUEUED,
        _AT_ONCE,
        0,
        0,
        extensions,
    )
    shortcuts.begin_queued(node, job, args, queue)
    if node.trace is not None or node.traces.first[job_id[11]]:
        trace.begun(node, job)
    return Status(job_id)


def may_follow(node: NodeState, client: Client, args: list[bytes]) -> bool:
    """May this ADDJOB run while the client waits for replicas of earlier ones?

    Not if its result depends on theirs: a job with REPLICATE 1 would be queued before them, unless
    it waits for its key, and MAXLEN depends on the length of the queue.
    """
    if len(args) < _LEAST or not pending_adds.may_follow(node, client, args[2]):
        return False
    try:
        return _RESOLVED[tuple(args[4:])][0].may_follow
    except CommandError:
        return False


def _resolve(words: tuple[bytes, ...]) -> tuple[ResolvedOptions, Extensions | None]:
    """The resolved options for these words, and the extensions of the job.

    Parsing options takes longer than adding the job, and each job may have another group or key. So
    parsed options are cached with `_ANY` in place of both.
    """
    shared = list(words)
    own: dict[str, Any] = {}
    for at in range(1, len(shared)):
        option = OF_ONE_JOB.get(shared[at - 1].upper())
        if option is not None:
            own[option.extension] = read_text(option, words[at])
            shared[at] = _ANY
    resolved = _PARSED[tuple(shared)]
    return resolved, Extensions(**resolved.carried | own) if own else resolved.extensions


def _parse(words: tuple[bytes, ...]) -> ResolvedOptions:
    return _in(parse_options(list(words)), MAX_INTEGER)


def _in(options: Options, max_ttl_s: int) -> ResolvedOptions:
    """The options with defaults. TTL and RETRY are limited to `max_ttl_s` seconds (original, defect
    3)."""
    ttl = min(options.ttl, max_ttl_s)
    retry = (options if ttl == options.ttl else attrs.evolve(options, ttl=ttl)).retry_s
    extensions = options.extensions
    needs = needs_of(options.delay, retry * 1000, extensions)
    return ResolvedOptions(
        options,
        ttl * 1000,
        retry * 1000,
        options.delay,
        ((1 << 32) - 1 - ttl) * 1000,
        options.carried,
        extensions,
        needs,
        options.delay == 0
        and options.retry != 0
        and options.maxlen is None
        and options.unique is None,
        id_end(ttl, retry > 0),
        options.maxlen is None
        and not options.is_async
        and (options.replicate != 1 or options.unique is not None),
    )


_PLAIN: Final = _in(Options(), MAX_INTEGER), None
_ANY: Final = b"any"
_PARSED: Final = Remembered(_parse)
_RESOLVED: Final = Remembered(_resolve, lambda pair: pair[0].options.unique is None)
"""Excludes options with a key, because most keys are used by one job only."""


def _check(
    node: NodeState,
    name: bytes,
    resolved: ResolvedOptions,
    replicas: int,
    sync: int,
    *,
    external: bool,
) -> None:
    """Check the request, in the original's order. Raises CommandError."""
    options = resolved.options
    if (resolved.needs or resolved.extensions) and not node.keeps_extensions:
        raise CommandError(NO_PLACE if resolved.extensions else _NO_PLACE_FOR_LONG)
    if options.retry == 0 or options.delay:
        check_periods(options, replicas)
    if replicas > 1 or external:
        _check_nodes(node, sync, resolved, external=external)
    if options.maxlen is not None:
        _check_length(node, name, options.maxlen)


def check_periods(options: Options, replicas: int) -> None:
    """Check RETRY and DELAY against REPLICATE and TTL. Raises CommandError."""
    if options.retry == 0 and replicas > 1:
        raise CommandError(
            b"ERR With RETRY set to 0 please explicitly set  REPLICATE to 1 (at-most-once delivery)"
        )
    if options.delay >= options.ttl * 1000:
        raise CommandError(
            b"ERR The specified DELAY is greater than TTL. "
            b"Job refused since would never be delivered: DELAY is %b, TTL %d"
            % (in_seconds(options.delay), options.ttl)
        )
    if options.delay > options.longest_s * 1000:
        raise CommandError(
            b"ERR DELAY must be at most %d seconds%b: %b"
            % (
                options.longest_s,
                b"" if options.has_ours else _OR_LONGER,
                in_seconds(options.delay),
            )
        )


def _check_nodes(node: NodeState, sync: int, resolved: ResolvedOptions, *, external: bool) -> None:
    needed = sync if external else sync - 1
    reachable = len(node.cluster.reachable)
    able = copies.candidates_for(node, resolved.needs)
    if able < needed <= reachable:
        raise CommandError(
            replication.NOT_ENOUGH_NODES
            + b": %d of the %d other nodes can keep a job with %b"
            % (able, reachable, _EXTENSIONS if resolved.extensions else _LONG)
            + _unlinked(node)
        )
    if needed > reachable and needed > able + copies.restarting(node, resolved.needs):
        raise CommandError(
            replication.NOT_ENOUGH_NODES
            + (_I_LEAVE if external and needed == reachable + 1 else b"")
        )


def _unlinked(node: NodeState) -> bytes:
    """An addition to the error if reachable nodes have no link: a node that has stopped or
    restarted counts by its old capabilities until it is suspected or linked."""
    count = sum([not peer.is_connected for peer in node.cluster.reachable])
    if not count:
        return b""
    return b"; there is no link to %d of them now: try again, or with a smaller REPLICATE" % count


def _check_length(node: NodeState, name: bytes, maxlen: int) -> None:
    queue = node.queues.get(name)
    if queue is not None and len(queue) >= maxlen:
        raise CommandError(
            b"MAXLEN Queue is already longer than the specified MAXLEN count: it has %d jobs"
            % len(queue)
        )


def _make(
    node: NodeState,
    args: list[bytes],
    resolved: ResolvedOptions,
    extensions: Extensions | None,
    replicas: int,
    *,
    external: bool,
) -> Job:
    body = args[2]
    myself = node.cluster.myself
    mono = node.mono
    made, number = stamps.next_stamp(node)
    return Job(
        id_with(myself.id_start, node.rng.getrandbits(144), resolved.id_end),
        args[1],
        body,
        replicas,
        made,
        number,
        node.timers.shared(mono + resolved.ttl),
        resolved.delay,
        resolved.retry,
        () if external else myself.holding,
        mono + (resolved.delay or resolved.retry) or 1,
        extensions=_with_key(extensions, body),
    )


def _with_key(extensions: Extensions | None, body: bytes) -> Extensions | None:
    """Replace an empty key with the SHA-256 of the body, in hexadecimal digits."""
    if extensions is None or extensions.key != b"":
        return extensions
    return attrs.evolve(extensions, key=hashlib.sha256(body).hexdigest().encode())


def max_ttl(node: NodeState) -> int:
    """The longest TTL in seconds: such a job expires just before Unix seconds exceed 32 bits."""
    return max((1 << 32) - 1 - node.wall // 1000, 1)
