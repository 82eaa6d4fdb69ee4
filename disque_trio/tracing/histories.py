"""Histories: requests of clients and their replies, one JSON object per line (docs/histories.md).

The recorder of the client library and the simulator write the same lines. A call has one line when
it is sent and another one when it ends, so the calls of a killed client are included.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

from disque_trio.statemachine.base import Failure, Reply, Special, Status

RECORDED: Final = frozenset(
    b"ADDJOB GETJOB BEGIN ACKJOB FASTACK WORKING NACK RELEASE ENQUEUE DEQUEUE DELJOB CANCEL PURGE "
    b"REDRIVE PAUSE WAITJOB".split()
)
"""The commands in histories: those that change jobs, deliver them, or wait for their end."""
LONGEST_BODY: Final = 64
"""Longer bodies are replaced by their digests."""
_BODIES: Final = {b"ADDJOB": 2, b"ACKJOB": 3}
"""By command: the index of the body in the request: that of a job, or a result after ``ACKJOB id
RESULT``."""
DIGEST: Final = "sha256:"
"""The prefix of the digest of a body; the SHA-256 in hexadecimal digits follows."""


def is_recorded(words: Sequence[bytes]) -> bool:
    """Does a request with these words belong to a history?"""
    return bool(words) and words[0].upper() in RECORDED


def header_line(*, has_all_faults: bool) -> bytes:
    """Return the first line of a file, which is optional."""
    return _line({"history": 1, "faults": "known" if has_all_faults else "unknown"})


def fault_line(
    fault: str, at: float, until: float | None, *, node: str = "", memory: str = "kept"
) -> bytes:
    """Return the line of a known fault. `until` is None if it lasts to the end; `memory` is kept or
    lost."""
    facts: dict[str, Any] = {"fault": fault, "at": round(at, 6)}
    facts |= {} if until is None else {"until": round(until, 6)}
    facts |= {"node": node} if node else {}
    return _line(facts | ({"memory": memory} if memory != "kept" else {}))


def begin_line(client: str, number: int, at: float, node: str, words: Sequence[bytes]) -> bytes:
    """Return the line of a sent request; `number` is that of the call. Times are in seconds."""
    return _call(client, number, at, {"node": node, "request": _request(words)})


def reply_line(client: str, number: int, at: float, reply: Reply) -> bytes:
    """Return the line of a reply."""
    return _call(client, number, at, _answer(reply))


def lost_line(client: str, number: int, at: float, reason: str) -> bytes:
    """Return the line of a call without a reply: what the node did is unknown."""
    return _call(client, number, at, {"lost": reason})


def _call(client: str, number: int, at: float, facts: dict[str, Any]) -> bytes:
    return _line({"client": client, "call": number, "at": round(at, 6), **facts})


def body_of(body: bytes) -> bytes:
    """Return a body as in histories."""
    if len(body) <= LONGEST_BODY:
        return body
    return f"{DIGEST}{sha256(body).hexdigest()}".encode()


def _line(facts: dict[str, Any]) -> bytes:
    return json.dumps(facts, separators=(",", ":")).encode() + b"\n"


def _text(word: bytes) -> str:
    """Decode UTF-8; each other byte becomes a surrogate, which JSON writes as an escape."""
    return word.decode("utf-8", "surrogateescape")


def _request(words: Sequence[bytes]) -> list[str]:
    at = _BODIES.get(words[0].upper(), 0)
    if at and len(words) > at:
        words = [*words[:at], body_of(words[at]), *words[at + 1 :]]
    return [_text(word) for word in words]


def _answer(reply: Reply) -> dict[str, Any]:
    if isinstance(reply, Failure):
        return {"error": _text(reply.text)}
    if isinstance(reply, list):
        return {"reply": [_job(each) if isinstance(each, list) else _short(each) for each in reply]}
    return {"reply": _plain(reply)}


def _job(reply: list[Reply]) -> list[Any]:
    """Return a delivered job: its queue, id and body, then names and values."""
    return [_short(each) if at == 2 else _plain(each) for at, each in enumerate(reply)]


def _short(reply: Reply) -> Any:
    """Return a body or a result."""
    return _plain(body_of(reply) if isinstance(reply, bytes) else reply)


def _plain(reply: Reply) -> Any:
    if isinstance(reply, bytes):
        return _text(reply)
    if isinstance(reply, Status):
        return _text(reply.text)
    if isinstance(reply, Failure):
        return {"error": _text(reply.text)}
    if isinstance(reply, list):
        return [_plain(each) for each in reply]
    if reply in (None, Special.NULL_ARRAY):
        return None
    return reply if isinstance(reply, int) else str(reply)
