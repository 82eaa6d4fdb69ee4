"""TRACE: show and select traces of single jobs at this node (`jobtraces`)."""

from itertools import islice
from typing import Final

from disque_trio.statemachine import jobtraces, trace
from disque_trio.statemachine.base import OK, SYNTAX_ERROR, CommandError, JobId, Reply, map_for
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands import parse
from disque_trio.statemachine.commands.usage import mistake
from disque_trio.statemachine.job import check_id
from disque_trio.statemachine.jobtraces import JobTrace
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.suggestions import shown

USAGE: Final = (
    "JOB id [SECONDS n] | GET id [AFTER n] | LIST [QUEUE q] [COUNT n] | QUEUE pattern RATE n"
)
_SECONDS: Final = 3600
_MOST_SECONDS: Final = 366 * 86_400
_COUNT: Final = 100
_MOST_PATTERNS: Final = 16
"""Each pattern is checked for every new job."""


def traces(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """TRACE JOB id [SECONDS n] | GET id [AFTER n] | LIST [QUEUE q] [COUNT n] | QUEUE pattern RATE
    n."""
    match [args[1].lower(), *args[2:]]:
        case [b"job", id, *words]:
            seconds = _numbers(words, SECONDS=_SECONDS)["SECONDS"]
            if seconds > _MOST_SECONDS:
                raise CommandError(b"ERR SECONDS must be at most %d: %d" % (_MOST_SECONDS, seconds))
            return int(trace.ask(node, check_id(id), seconds))
        case [b"get", id, *words]:
            return _get(node, client, check_id(id), _numbers(words, AFTER=0)["AFTER"])
        case [b"list", *words]:
            return _list(node, client, words)
        case [b"queue", pattern, word, rate] if word.lower() == b"rate":
            return _of_queues(node, pattern, rate)
    raise CommandError(SYNTAX_ERROR + b": " + mistake("TRACE", USAGE, args))


def _numbers(words: list[bytes], **known: int) -> dict[str, int]:
    """Parse options with numbers, in any order. `known` has the defaults. Raises CommandError."""
    found = dict(known)
    rest = parse.Words(words)
    for word in rest:
        name = word.upper().decode("latin-1")
        if name not in known:
            names = b" or ".join([each.encode() for each in known])
            raise CommandError(SYNTAX_ERROR + b": %b is not %b" % (shown(word), names))
        option = name.encode()
        found[name] = parse.at_least(rest.value(option), 0, b"ERR bad number", name=option)
    return found


def _get(node: NodeState, client: Client, id: JobId, after: int) -> Reply:
    """TRACE GET. None if there is no trace of the job."""
    kept = node.traces.jobs.get(id)
    if kept is None:
        return None
    rows: list[Reply] = [
        [
            row.number,
            row.time,
            row.mono,
            row.kind.encode(),
            row.client.encode(),
            row.peer.encode(),
            row.cause.encode(),
            row.detail.encode(),
        ]
        for row in kept.rows
        if row.number > after
    ]
    return map_for(client.protocol, {**_head(node, id, kept), b"rows": rows})


def _head(node: NodeState, id: JobId, kept: JobTrace) -> dict[bytes, Reply]:
    return {
        b"id": id,
        b"queue": kept.queue,
        b"why": kept.reason.value,
        b"here": int(id in node.jobs),
        b"on": int(node.mono < kept.until),
        b"last": kept.last,
        b"omitted": kept.last - len(kept.rows),
    }


def _list(node: NodeState, client: Client, words: list[bytes]) -> Reply:
    """TRACE LIST: the newest traces first."""
    queue, count = None, _COUNT
    rest = parse.Words(words)
    for word in rest:
        match word.upper():
            case b"QUEUE":
                queue = rest.value(b"QUEUE")
            case b"COUNT":
                count = parse.at_least(rest.value(b"COUNT"), 1, b"ERR bad number", name=b"COUNT")
            case _:
                raise CommandError(SYNTAX_ERROR + b": %b is not QUEUE or COUNT" % shown(word))
    found = (
        map_for(client.protocol, _head(node, id, kept))
        for id, kept in reversed(node.traces.jobs.items())
        if queue is None or kept.queue == queue
    )
    return list(islice(found, count))


def _of_queues(node: NodeState, pattern: bytes, word: bytes) -> Reply:
    rate = parse.at_least(word, 0, b"ERR bad number", name=b"RATE", most=jobtraces.MOST)
    known = node.traces.queues
    if rate and pattern not in known and len(known) >= _MOST_PATTERNS:
        raise CommandError(
            b"ERR %d patterns are traced, which is the most. RATE 0 ends one: %b"
            % (len(known), b", ".join(map(shown, known)))
        )
    node.traces.set_queue(pattern, rate)
    return OK
