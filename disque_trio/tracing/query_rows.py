"""Queries of simulated clients about jobs and queues, and their replies, as rows.

Only simulated clients write rows of queries: monitors query a live node all the time.
`checkers.queries` compares the replies with the other rows of the node.
"""

from collections.abc import Callable, Iterator
from typing import Final
from zlib import crc32

from disque_trio.statemachine.base import Failure, Reply, Status
from disque_trio.tracing.client_rows import Note

_ABOUT_A_QUEUE: Final = ("qlen", "qpeek", "qstat")
_WITHOUT_JOBS: Final = (["server"], ["stats"])
"""Sections of INFO without figures about jobs."""
_SHORT: Final = 8
"""The number of characters of a node's id in a row."""


def invoked(words: list[bytes]) -> list[Note]:
    """Return the note for a sent query."""
    note = _note("query.invoke", words)
    return [] if note is None else [note]


def answered(words: list[bytes], reply: Reply) -> list[Note]:
    """Return the note for a received reply."""
    refused = isinstance(reply, Failure)
    note = _note("query.refused" if refused else "query.ok", words)
    if note is None:
        return []
    note.detail = (
        _text(reply.text) if isinstance(reply, Failure) else _SHORT_REPLIES[note.cause](reply)
    )
    return [note]


def lost(words: list[bytes], cause: str) -> list[Note]:
    """Return the note for a query without a reply: `cause` is disconnect, timeout or quit."""
    note = _note("query.unknown", words)
    if note is None:
        return []
    note.detail = cause
    return [note]


def _note(kind: str, words: list[bytes]) -> Note | None:
    """Return a note: the cause is the command; the detail has all words except a job or a queue."""
    command = words[0].decode("latin-1").lower()
    rest = [_text(word) for word in words[1:]]
    if command not in _SHORT_REPLIES or (command == "info" and rest in _WITHOUT_JOBS):
        return None
    if command == "show" and len(rest) > 1:  # SHOW KEY returns facts of the whole cluster
        return None
    note = Note(kind, cause=command)
    if command in _ABOUT_A_QUEUE and rest:
        note.queue = rest.pop(0)
    elif command == "show" and rest:
        note.job = rest.pop(0)
    note.detail = " ".join(rest)
    return note


# Short forms of replies.


def _number(reply: Reply) -> str:
    return repr(reply)


def _jobs(reply: Reply) -> str:
    """QPEEK: each id, with the CRC-32 of the body."""
    jobs = reply if isinstance(reply, list) else []
    return " ".join(f"{_text(job[1])}:{_checksum(job[2])}" for job in jobs if isinstance(job, list))


def _checksum(body: Reply) -> str:
    return str(crc32(body)) if isinstance(body, bytes) else ""


def _page(reply: Reply) -> str:
    """QSCAN and JSCAN: the next cursor and the names."""
    cursor, items = _pair(reply)
    names = items if isinstance(items, list) else []
    return " ".join([_text(cursor), *map(_name, names)])


def _name(item: Reply) -> str:
    """Return the id or name; with REPLY all, an item has the fields of SHOW."""
    return _text(_facts(item)["id"] if isinstance(item, list) else item)


def _pair(reply: Reply) -> tuple[Reply, Reply]:
    assert isinstance(reply, list)
    return reply[0], reply[1]


def _queue(reply: Reply) -> str:
    """QSTAT: the figures that other rows show."""
    facts = _facts(reply)
    return (
        _spelled(facts, {"len": "len", "in": "jobs-in", "out": "jobs-out", "dead": "dead"})
        if facts
        else ""
    )


def _job(reply: Reply) -> str:
    """SHOW: the state, the options in milliseconds, the CRC-32 of the body and of the last error,
    and the holders."""
    facts = _facts(reply)
    if not facts:
        return ""
    queue, holders = facts["queue"], facts["nodes-delivered"]
    assert isinstance(holders, list)
    return " ".join(
        [
            f"state={_text(facts['state'])}",
            _spelled(facts, {"replicate": "repl", "ttl": "ttl"}),
            *(f"{name}={_milliseconds(facts[name])}" for name in ("delay", "retry")),
            f"body={_checksum(facts['body'])}",
            f"failed={facts.get('failed-at', 0)!r} error={_checksum(facts.get('error'))}",
            *([f"result={_checksum(facts['result'])}"] if "result" in facts else []),
            f"holders={','.join(_text(id)[:_SHORT] for id in holders)}",
            f"queue={'' if queue is None else _text(queue)}",
        ]
    )


def _facts(reply: Reply) -> dict[str, Reply]:
    """Return names and values of a flat list; empty if it is no list."""
    if not isinstance(reply, list):
        return {}
    each: Iterator[Reply] = iter(reply)
    return {_text(name): value for name, value in zip(each, each, strict=True)}


def _spelled(facts: dict[str, Reply], names: dict[str, str]) -> str:
    return " ".join(f"{short}={facts[name]!r}" for short, name in names.items() if name in facts)


def _milliseconds(seconds: Reply) -> int:
    assert isinstance(seconds, int)
    return seconds * 1000


def _figures(reply: Reply) -> str:
    """INFO: the numbers of jobs and queues."""
    lines = [line.partition(":") for line in _text(reply).splitlines()]
    wanted = ("registered_jobs", "registered_queues")
    return " ".join(f"{name}={value}" for name, _, value in lines if name in wanted)


def _identity(reply: Reply) -> str:
    """HELLO: the node's own id."""
    assert isinstance(reply, list)
    return _text(reply[1])[:_SHORT]


def _text(word: Reply) -> str:
    text = word.text if isinstance(word, Status) else word
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)


_SHORT_REPLIES: Final[dict[str, Callable[[Reply], str]]] = {
    "hello": _identity,
    "qlen": _number,
    "qpeek": _jobs,
    "qstat": _queue,
    "show": _job,
    "qscan": _page,
    "jscan": _page,
    "info": _figures,
}
