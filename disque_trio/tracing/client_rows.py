"""Rows of client operations, derived from the words of a request and from its reply.

All engines and clients use these functions, so the same checkers judge them all
(docs/guarantees.md, "Terms"). Only commands about jobs have rows.
"""

from hashlib import sha256
from typing import Final
from zlib import crc32

import attrs

from disque_trio.statemachine.base import Failure, Reply, Status
from disque_trio.statemachine.commandoptions import ACKJOB, KEEP_RESULT, NACK, RELEASE
from disque_trio.statemachine.job import is_well_formed
from disque_trio.statemachine.joboptions import BY_WORD
from disque_trio.tracing import bodies

_VERBS: Final = {
    b"ACKJOB": "ack",
    b"FASTACK": "fastack",
    b"NACK": "nack",
    b"WORKING": "working",
    b"DELJOB": "deljob",
    b"ENQUEUE": "enqueue",
    b"DEQUEUE": "dequeue",
    b"RELEASE": "release",
    b"BEGIN": "begin",
    b"WAITJOB": "wait",
}
_OPTIONS: Final = {b"NACK": NACK, b"RELEASE": RELEASE}
"""The options that may follow the job ids."""
_OF_QUEUES: Final = (b"PURGE", b"REDRIVE")
KINDS: Final = frozenset(
    {"add", "get", "purge", "purge-dead", "redrive", "enqueue-queue", *_VERBS.values()}
)
"""The part before the dot in kinds of these rows."""
_DOUBTFUL: Final = (b"NOREPL", b"MISCONF")
"""Prefixes of errors after which the job may exist: it was added, but maybe not journaled."""
_NO_COPY_SENT: Final = b"NOREPL Not enough"
"""Prefix of the refusal before any copy is sent. After other NOREPLs the job may exist."""


@attrs.define
class Note:
    """The client's part of a row."""

    kind: str
    job: str = ""
    queue: str = ""
    cause: str = ""
    detail: str = ""


def invoked(words: list[bytes]) -> list[Note]:
    """Return the notes for a sent request."""
    command = words[0].upper()
    if command == b"ADDJOB" and len(words) > 3:
        return [Note("add.invoke", queue=_text(words[1]), detail=_options(words))]
    if _is_of_queue(words):
        return _of_queue(words, "invoke")
    verb = _VERBS.get(command)
    if verb is None:
        return []
    option = "nohang" if verb == "wait" and b"NOHANG" in words else _option(words)
    named = _named(words)
    detail = _OPTION_DETAILS[verb](words[1 + len(named) :]) if verb in _OPTION_DETAILS else ""
    return [Note(f"{verb}.invoke", _id(id), "", option, _token(id) + detail) for id in named]


def _error(options: list[bytes]) -> str:
    """Return the CRC-32 of the text of ERROR."""
    at = options.index(b"ERROR") if b"ERROR" in options else len(options)
    return f" error={crc32(options[at + 1])}" if at + 1 < len(options) else ""


def _result(options: list[bytes]) -> str:
    """Return the CRC-32 of a result, and for how many milliseconds it is kept."""
    values = {word.upper(): value for word, value in zip(options[::2], options[1::2], strict=False)}
    if b"RESULT" not in values:
        return ""
    keep = round(float(values.get(b"KEEP", KEEP_RESULT / 1000)) * 1000)
    return f"result={crc32(values[b'RESULT'])} keep={keep}"


def _with_result(options: list[bytes]) -> str:
    return "withresult" if b"WITHRESULT" in options else ""


_OPTION_DETAILS: Final = {"nack": _error, "ack": _result, "wait": _with_result}
"""By verb: the function that describes the options of a command in its row."""


def answered(words: list[bytes], reply: Reply) -> list[Note]:
    """Return the notes for a received reply."""
    command = words[0].upper()
    if command == b"ADDJOB" and len(words) > 3:
        return [_added(_text(words[1]), reply)]
    if command == b"GETJOB":
        jobs = reply if isinstance(reply, list) else []
        tied = ("tied " if b"TIED" in words else "") + ("held " if b"HELD" in words else "")
        return [_delivered(job, tied) for job in jobs if isinstance(job, list)]
    if _is_of_queue(words):
        return _of_queue(words, "ok", detail=repr(reply))
    verb = _VERBS.get(command)
    if verb is None:
        return []
    if verb == "wait":
        reply = [reply]
    each = reply if isinstance(reply, list) else [reply] * len(words)
    return [_outcome(verb, id, outcome) for id, outcome in zip(_named(words), each, strict=False)]


def lost(words: list[bytes], cause: str) -> list[Note]:
    """Return the notes for a request without a reply: `cause` is disconnect, timeout or quit."""
    command = words[0].upper()
    if command == b"ADDJOB" and len(words) > 3:
        return [Note("add.unknown", queue=_text(words[1]), cause=cause)]
    if command == b"GETJOB" and cause == "timeout":
        return [Note("get.unknown", cause=cause)]
    if _is_of_queue(words):
        return _of_queue(words, "unknown", cause=cause)
    verb = _VERBS.get(command)
    if verb is None:
        return []
    return [Note(f"{verb}.unknown", _id(id), cause=cause) for id in _named(words)]


def _named(words: list[bytes]) -> list[bytes]:
    """Return the jobs that a command names, maybe with tokens."""
    command = words[0].upper()
    if command in _OPTIONS:
        options = [at for at, word in enumerate(words) if word.upper() in _OPTIONS[command]]
        return words[1 : options[0] if options else len(words)]
    has_options = command == b"WAITJOB" or (
        command == b"ACKJOB" and words[2:3] and words[2].upper() in ACKJOB
    )
    return words[1:2] if has_options else words[1:]


def _option(words: list[bytes]) -> str:
    """Return ``dead`` or ``delay`` if NACK or RELEASE has this option, otherwise an empty text."""
    command = words[0].upper()
    if command not in _OPTIONS:
        return ""
    rest = [word.upper() for word in words[1 + len(_named(words)) :]]
    if b"DEAD" in rest:
        return "dead"
    rest = rest[2:] if rest[:1] == [b"ERROR"] else rest
    return "delay" if rest[:1] == [b"DELAY"] and rest[1:2] and rest[1].strip(b"0.") else ""


def _is_of_queue(words: list[bytes]) -> bool:
    """Is the command about a queue, or about a number of jobs (REDRIVE)?"""
    command = words[0].upper()
    if command == b"ENQUEUE":
        return len(words) > 2 and words[1].upper() == b"QUEUE"
    return command in _OF_QUEUES


def _of_queue(words: list[bytes], event: str, **rest: str) -> list[Note]:
    """Return the notes for PURGE, REDRIVE and ENQUEUE QUEUE. REDRIVE may name jobs in place of a
    queue. The notes for a sent request include its options."""
    upper = [word.upper() for word in words]
    if event == "invoke" and b"BCAST" in upper[2:]:
        rest["cause"] = "bcast"
    elif event == "invoke" and b"COUNT" in upper[2:-1]:
        rest["detail"] = f"count={_text(words[upper.index(b'COUNT', 2) + 1])}"
    if words[0].upper() == b"ENQUEUE":
        return [Note(f"enqueue-queue.{event}", queue=_text(words[2]), **rest)]
    is_of_dead = b"DEAD" in [word.upper() for word in words[2:]]
    kind = f"{_text(words[0]).lower()}{'-dead' if is_of_dead else ''}.{event}"
    if words[0].upper() == b"REDRIVE" and is_well_formed(words[1]):
        return [Note(kind, _id(id), **rest) for id in words[1:]]
    return [Note(kind, queue=_text(words[1]), **rest)]


def _outcome(verb: str, id: bytes, reply: Reply) -> Note:
    if isinstance(reply, Failure):
        text = reply.text.decode("utf-8", "replace")
        return Note(f"{verb}.refused", _id(id), cause=error_code(reply), detail=text)
    if isinstance(reply, list):  # WAITJOB WITHRESULT
        end, value = reply
        result = f" result={crc32(value)}" if isinstance(value, bytes) else ""
        return Note(f"{verb}.ok", _id(id), detail=f"{end!r}{result}")
    return Note(f"{verb}.ok", _id(id), detail=repr(reply))


def _added(queue: str, reply: Reply) -> Note:
    if isinstance(reply, Status):
        return Note("add.ok", _id(reply.text), queue)
    if not isinstance(reply, Failure):
        return Note("add.unknown", queue=queue, cause="reply", detail=repr(reply))
    kind = "add.unknown" if is_doubtful(reply.text) else "add.refused"
    detail = reply.text.decode("utf-8", "replace")
    return Note(kind, queue=queue, cause=error_code(reply), detail=detail)


def is_doubtful(error: bytes) -> bool:
    """May a job exist although the reply to ADDJOB was this error?"""
    return error.startswith(_DOUBTFUL) and not error.startswith(_NO_COPY_SENT)


def _delivered(job: list[Reply], tied: str) -> Note:
    queue, id, body, *rest = job
    facts = dict(zip(rest[::2], rest[1::2], strict=True))
    assert isinstance(queue, bytes)
    assert isinstance(id, bytes)
    assert isinstance(body, bytes)
    seen = (
        f"nacks={facts[b'nacks']!r} additional={facts[b'additional-deliveries']!r} " if rest else ""
    )
    seen += f"snoozes={facts[b'snoozes']!r} " if b"snoozes" in facts else ""
    token = facts.get(b"token")
    seen += f"token={_text(token)} " if isinstance(token, bytes) else ""
    return Note(
        "get.deliver", _id(id), _text(queue), detail=f"{seen}{tied}body={bodies.shown(body)}"
    )


def _options(words: list[bytes]) -> str:
    """Return ``timeout=100 replicate=3 … body=…``; the body is last, because it may contain
    anything. A text is replaced by its CRC-32, as in the rows of nodes."""
    shown = [f"timeout={_text(words[3])}"]
    rest = iter(words[4:])
    for word in rest:
        name, option = _text(word).lower(), BY_WORD.get(word.upper())
        value = b"" if name == "async" else next(rest, b"")
        if name == "unique":
            value = value or sha256(words[2]).hexdigest().encode()
        if option is not None and option.is_text:
            shown.append(f"{name}={crc32(value)}")
        else:
            shown.append(name if name == "async" else f"{name}={_text(value)}")
    return " ".join([*shown, f"body={bodies.shown(words[2])}"])


def error_code(reply: Failure) -> str:
    """Return the first word of an error, such as ``OOM``."""
    return _text(reply.text.partition(b" ")[0])


def _id(id: bytes) -> str:
    return id.partition(b"@")[0].decode("latin-1")


def _token(id: bytes) -> str:
    return id.partition(b"@")[2].decode("latin-1")


def _text(word: bytes) -> str:
    return word.decode("utf-8", "replace")
