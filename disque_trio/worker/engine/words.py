"""The words of the engine's requests, and the meaning of the replies."""

from collections.abc import Iterator, Sequence
from typing import Final, cast

from disque_trio.statemachine.base import ORIGINAL_PERIOD_S, Failure, Reply
from disque_trio.statemachine.commandoptions import behind_from
from disque_trio.statemachine.extensions import MAX_ERROR, MAX_REASON
from disque_trio.worker.engine.records import (
    MILLI,
    NEVER,
    SECOND,
    Dead,
    Done,
    Job,
    Micros,
    Node,
    Outcome,
    Release,
    Retry,
)

META: Final = b"withmeta"
TIED: Final = b"tied"
HELD: Final = b"held"
TOKENS: Final = b"tokens"
RELEASE: Final = b"release"
UNBLOCK: Final = b"unblock"
DELAY: Final = b"nack-delay"
RELEASE_DELAY: Final = b"release-delay"
BURY: Final = b"dead-letters"
LONG_WAITS: Final = b"long-waits"
LAST_ERROR: Final = b"last-error"
RESULTS: Final = b"results"
UNIQUE: Final = b"unique"

TRANSIT: Final[Micros] = 50 * MILLI
"""How long a reply may have been in transit."""
UNSURE: Final[Micros] = 750 * MILLI
"""A lease is spread by 250 ms, and other holders may requeue the job in its last 500 ms."""
ASSUMED: Final[Micros] = 1 * SECOND
"""The assumed RETRY until a node of the original has reported it."""
SHORTEST: Final[Micros] = 100 * MILLI
"""The shortest lease that is assumed."""
ACK: Final[tuple[tuple[bytes, ...], tuple[bytes, ...]]] = (b"ACKJOB",), ()
"""The words before and after the ids of jobs that are done."""
_ODD: Final = frozenset(b"%c" % digit for digit in b"13579bdfBDF")
DEAD_QUEUE: Final = b"dead."
"""The prefix of the queue for dead jobs, in nodes that keep none."""


def has(node: Node, feature: bytes) -> bool:
    """Has the node announced this feature?"""
    return node.features is not None and feature in node.features


def is_snooze(outcome: Outcome) -> bool:
    """Is the outcome reported by RELEASE with a delay?"""
    return isinstance(outcome, Release) and outcome.delay is not None


def may_snooze(node: Node) -> bool:
    """Does the node support RELEASE with a delay, as far as known?"""
    return node.announced is None or RELEASE_DELAY in node.announced


def features(reply: Reply) -> frozenset[bytes]:
    """The features in a reply to INFO."""
    if isinstance(reply, bytes):
        for line in reply.splitlines():
            name, _, value = line.partition(b":")
            if name == b"features":
                return frozenset(value.split(b","))
    return frozenset()


def take(
    node: Node, queues: Sequence[bytes], count: int, wait: Micros, *, ties: bool
) -> list[bytes]:
    """GETJOB, which does not wait if `wait` is 0."""
    words = [b"GETJOB", b"TIMEOUT", b"%d" % (wait // MILLI)] if wait else [b"GETJOB", b"NOHANG"]
    words += [b"COUNT", b"%d" % count]
    words.append(b"WITHMETA" if has(node, META) else b"WITHCOUNTERS")
    if ties and has(node, TIED):
        words += [b"TIED", b"HELD"] if has(node, HELD) else [b"TIED"]
    return [*words, b"FROM", *behind_from(queues)]


def named(node: Node, job: Job) -> bytes:
    """The job, with its token if the node reads one."""
    return b"%b@%b" % (job.id, job.token) if job.token and has(node, TOKENS) else job.id


def settle(node: Node, job: Job) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """The words before and after the ids, for the job's outcome at this node."""
    match job.outcome:
        case Done(result, keep_s):
            is_kept = result is not None and has(node, RESULTS)
            return (ACK[0], _result(result, keep_s)) if is_kept else ACK
        case Release(delay) if delay is not None and has(node, RELEASE_DELAY):
            return (b"RELEASE",), (b"DELAY", _seconds(node, delay))
        case Release(delay) if delay and has(node, DELAY):
            return (b"NACK",), (b"DELAY", _seconds(node, delay))
        case Release():
            return (b"RELEASE" if has(node, RELEASE) else b"ENQUEUE",), ()
        case Dead(reason, error) if has(node, BURY):
            return (b"NACK",), (b"DEAD", reason[:MAX_REASON], *_error(node, error))
        case Dead():
            return (b"ADDJOB", DEAD_QUEUE + job.queue, job.body), (b"5000",)
        case Retry(delay, error) if delay and has(node, DELAY):
            return (b"NACK",), (b"DELAY", _seconds(node, delay), *_error(node, error))
        case Retry(_, error):
            return (b"NACK",), _error(node, error)


def _result(value: bytes | None, keep_s: int) -> tuple[bytes, ...]:
    return b"RESULT", value or b"", b"KEEP", b"%d" % keep_s


def _error(node: Node, text: bytes) -> tuple[bytes, ...]:
    """The part of the error that the node keeps."""
    return (b"ERROR", text[:MAX_ERROR]) if text and has(node, LAST_ERROR) else ()


def _seconds(node: Node, delay: Micros) -> bytes:
    """The delay for the node: all of it, or the longest that it supports."""
    if not has(node, LONG_WAITS):
        delay = min(delay, ORIGINAL_PERIOD_S * SECOND)
    return b"%d.%03d" % divmod(delay // MILLI, 1000)


def is_once(id: bytes) -> bool:
    """Does the id have RETRY 0? Then its last field is even (original 3.1)."""
    return id[-1:] not in _ODD


def jobs(reply: Reply) -> Iterator[tuple[bytes, bytes, bytes, dict[bytes, Reply]]]:
    """The jobs of a reply to GETJOB: queue, id, body, and further fields of each."""
    for row in reply if isinstance(reply, list) else ():
        if isinstance(row, list):
            queue, id, body = row[:3]
            if isinstance(queue, bytes) and isinstance(id, bytes) and isinstance(body, bytes):
                yield queue, id, body, _facts(row)


def _facts(row: list[Reply]) -> dict[bytes, Reply]:
    try:
        return cast("dict[bytes, Reply]", dict(zip(row[3::2], row[4::2], strict=False)))
    except TypeError:  # a name is a list
        return {}


def number(facts: dict[bytes, Reply], name: bytes) -> int:
    """A number among the fields of a job; 0 if missing."""
    value = facts.get(name)
    return value if isinstance(value, int) else 0


def lease(facts: dict[bytes, Reply], base: Micros) -> tuple[Micros, Micros]:
    """The length of the lease, and when the current one ends. `base` is the time of the reply."""
    lease_ms = facts.get(b"lease-ms")
    length = lease_ms * MILLI if isinstance(lease_ms, int) else lease_of(ASSUMED)
    return max(length, SHORTEST), base + max(length - TRANSIT, SHORTEST // 2)


def expires(facts: dict[bytes, Reply], now: Micros) -> Micros:
    """When a job expires, by a reply that has just arrived; NEVER if the reply has no TTL."""
    ttl_ms = facts.get(b"ttl-ms")
    return now + ttl_ms * MILLI if isinstance(ttl_ms, int) else NEVER


def lease_of(retry: Micros) -> Micros:
    """The part of a RETRY that is safe to use."""
    return max(retry - UNSURE, SHORTEST)


def code(reply: Reply) -> bytes:
    """The first word of an error; empty for any other reply."""
    return reply.text.partition(b" ")[0] if isinstance(reply, Failure) else b""
