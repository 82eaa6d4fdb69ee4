"""Commands and the meaning of their replies, without I/O (docs/commands.md).

Each function makes one `Command`. Both clients run them, so they send and mean the same.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.client.refusals import BadReplyError, refused
from disque_trio.statemachine.base import NULL_ARRAY, Failure, Reply, Status

Result = TypeVar("Result")
Other = TypeVar("Other")
Text = str | bytes
"""Names and bodies; text is sent as UTF-8."""
Facts = dict[str, Reply]
"""What a node tells of a queue or a job, by its names."""

ADD_TIMEOUT_S: Final = 5.0


@attrs.frozen
class Command(Generic[Result]):
    """One request, and what its reply means."""

    words: tuple[bytes, ...]
    meaning: Callable[[Reply], Result]
    """Raises `BadReplyError` for a reply that the command cannot have."""
    is_repeatable: bool = True
    """Does it do no harm to send it again if the reply was lost?"""
    wait_s: float = 0.0
    """How long the node may wait before it answers."""

    def result(self, reply: Reply) -> Result:
        """What the reply means. Raises `RefusedError` for an error of the node."""
        if isinstance(reply, Failure):
            raise refused(reply, self.words)
        try:
            return self.meaning(reply)
        except (TypeError, ValueError, KeyError, IndexError) as error:
            name = self.words[0].decode()
            raise BadReplyError(f"the node answers {reply!r:.80} to {name}") from error


def outcome(command: Command[Result], reply: Reply) -> Result | DisqueError:
    """The result, or the error that it would raise."""
    try:
        return command.result(reply)
    except DisqueError as error:
        return error


@attrs.frozen
class Job:
    """A job that was delivered."""

    id: str
    queue: str
    """A name that is not UTF-8 has surrogates for its other bytes, as file names have."""
    body: bytes
    nacks: int = 0
    """How often it was given back."""
    additional_deliveries: int = 0
    """How often it was delivered before without being given back: its workers may have died."""


def call(*words: Text | float) -> Command[Reply]:
    """Any command; the reply as it is. It is not sent twice."""
    return Command(tuple(_word(each) for each in words), lambda reply: reply, is_repeatable=False)


def addjob(
    queue: Text,
    body: Text,
    *,
    timeout: float | None = ADD_TIMEOUT_S,
    replicate: int | None = None,
    delay: int = 0,
    retry: int | None = None,
    ttl: int | None = None,
    maxlen: int | None = None,
    is_async: bool = False,
    priority: int | None = None,
    limit: int | None = None,
    backoff: float | None = None,
    max_backoff: float | None = None,
    unique: Text | None = None,
    keep: float | None = None,
    if_exists: str | None = None,
) -> Command[str]:
    """ADDJOB: the id of the new job. Seconds; `timeout` limits the wait for the copies, None is for
    ever. With a `unique` key it may be the id of a job that has the key already, and the command is
    sent again if its answer is lost, unless `if_exists` refuses that job."""
    options: dict[str, Text | int | None] = {
        "REPLICATE": replicate,
        "DELAY": delay or None,
        "RETRY": retry,
        "TTL": ttl,
    }
    options |= {"MAXLEN": maxlen, "PRIORITY": priority, "LIMIT": limit}
    options |= {"BACKOFF": _seconds(backoff), "MAXBACKOFF": _seconds(max_backoff)}
    options |= {"UNIQUE": unique, "KEEP": _seconds(keep), "IFEXISTS": if_exists}
    words = [b"ADDJOB", _word(queue), _word(body), _wait(timeout)]
    for name, value in options.items():
        if value is not None:
            words += (name.encode(), _word(value))
    if is_async:
        words.append(b"ASYNC")
    return Command(
        tuple(words),
        _status,
        is_repeatable=unique is not None and if_exists in (None, "return"),
        wait_s=_limit(timeout),
    )


def getjob(*queues: Text, count: int = 1, timeout: float | None = None) -> Command[list[Job]]:
    """GETJOB: up to `count` jobs. It waits so many seconds for the first; None is for ever, 0 not
    at all. If the node fails meanwhile, the wait begins anew at the next one.

    Jobs that arrive while the task of an asynchronous client is cancelled are given back.
    """
    if not queues:
        raise ValueError("getjob needs the name of a queue")
    words = [b"GETJOB", b"WITHCOUNTERS", b"COUNT", _word(count)]
    words += [b"NOHANG"] if timeout == 0 else [b"TIMEOUT", _wait(timeout)]
    words += [b"FROM", *map(_word, queues)]
    return Command(tuple(words), _jobs, wait_s=_limit(timeout))


def ackjob(*ids: str) -> Command[int]:
    """ACKJOB: how many were known to the node and not acknowledged yet."""
    return _of_ids(b"ACKJOB", ids)


def fastack(*ids: str) -> Command[int]:
    """FASTACK: how many the node held."""
    return _of_ids(b"FASTACK", ids)


def nack(*ids: str, delay: float | None = None, dead: Text | None = None) -> Command[int]:
    """NACK: how many were given back, to be queued again at once or after a `delay` in seconds; or,
    with a reason why they are `dead`, how many are."""
    command = _of_ids(b"NACK", ids, is_repeatable=False)  # each counts
    words = command.words
    if delay is not None:
        words += (b"DELAY", _word(f"{delay:.3f}"))
    if dead is not None:
        words += (b"DEAD", _word(dead))
    return attrs.evolve(command, words=words)


def release(*ids: str) -> Command[int]:
    """RELEASE: how many jobs, which were not begun, were queued again."""
    return _of_ids(b"RELEASE", ids)


def redrive(*ids: str) -> Command[int]:
    """REDRIVE: how many dead jobs are queued again."""
    return _of_ids(b"REDRIVE", ids, is_repeatable=False)  # it may have died again meanwhile


def redrive_queue(queue: Text, count: int | None = None) -> Command[int]:
    """REDRIVE of a queue: how many of its dead jobs are queued again, `count` at most."""
    words = () if count is None else (b"COUNT", _word(count))
    return Command((b"REDRIVE", _word(queue), *words), _number, is_repeatable=False)


def enqueue(*ids: str) -> Command[int]:
    """ENQUEUE: how many were queued."""
    return _of_ids(b"ENQUEUE", ids)


def dequeue(*ids: str) -> Command[int]:
    """DEQUEUE: how many were taken out of their queue."""
    return _of_ids(b"DEQUEUE", ids)


def deljob(*ids: str) -> Command[int]:
    """DELJOB: how many the node has dropped."""
    return _of_ids(b"DELJOB", ids)


def working(job_id: str) -> Command[int]:
    """WORKING: for how many seconds the job will not be delivered again."""
    return Command((b"WORKING", job_id.encode()), _number)


def show(job_id: str) -> Command[Facts | None]:
    """SHOW: what the node knows of a job; None if it does not hold it."""
    return Command((b"SHOW", job_id.encode()), _facts)


def show_key(queue: Text, key: Text) -> Command[Facts | None]:
    """SHOW KEY: id and state of the job that has the key, and which nodes hold it; None if no node
    that can be reached knows one."""
    return Command((b"SHOW", b"KEY", _word(queue), _word(key)), _facts)


def cancel_key(queue: Text, key: Text) -> Command[int]:
    """CANCEL KEY: 1 if a job had the key, which ends and frees it; 0 if none had it."""
    return Command((b"CANCEL", b"KEY", _word(queue), _word(key)), _number, is_repeatable=False)


def qstat(queue: Text) -> Command[Facts | None]:
    """QSTAT: what the node knows of a queue; None if it has none of this name."""
    return Command((b"QSTAT", _word(queue)), _facts)


def qlen(queue: Text) -> Command[int]:
    """QLEN: how many jobs the queue has on the node."""
    return Command((b"QLEN", _word(queue)), _number)


def qpeek(queue: Text, count: int = 1) -> Command[list[Job]]:
    """QPEEK: the oldest jobs, or with a negative count the newest, which stay where they are."""
    return Command((b"QPEEK", _word(queue), _word(count)), _jobs)


def pause(queue: Text, *options: str) -> Command[str]:
    """PAUSE with `in`, `out`, `all`, `none`, `state` or `bcast`: the state that it has now."""
    return Command((b"PAUSE", _word(queue), *map(_word, options)), _status)


def hello() -> Command[list[Reply]]:
    """HELLO, as it is."""
    return Command((b"HELLO",), _items)


def ping() -> Command[str]:
    """PING: PONG."""
    return Command((b"PING",), _status)


def info(section: str = "all") -> Command[dict[str, str]]:
    """INFO: the fields of a section, by name."""
    return Command((b"INFO", section.encode()), _info)


def _of_ids(name: bytes, ids: Sequence[str], *, is_repeatable: bool = True) -> Command[int]:
    if not ids:
        raise ValueError(f"{name.decode().lower()} needs the id of a job")
    words = (name, *(each.encode() for each in ids))
    return Command(words, _number, is_repeatable=is_repeatable)


def _word(value: Text | float) -> bytes:
    if isinstance(value, bytes):
        return value
    return str(value).encode(errors="surrogateescape")


def _seconds(value: float | None) -> str | None:
    """With the three decimals that a node reads."""
    return None if value is None else f"{value:.3f}"


def _wait(seconds: float | None) -> bytes:
    """A node's timeout in milliseconds. 0 is for ever, and nothing shorter than 1 is sent."""
    if seconds is None:
        return b"0"
    if not 0 <= seconds < math.inf:
        raise ValueError(f"a timeout is 0 or more seconds, or None: {seconds}")
    return b"%d" % max(math.ceil(seconds * 1000), 1)


def _limit(seconds: float | None) -> float:
    return math.inf if seconds is None else seconds


def text(value: Reply) -> str:
    """A name as text; other bytes than UTF-8 become surrogates, which are sent as these bytes."""
    if isinstance(value, Status):
        value = value.text
    if not isinstance(value, bytes):
        raise TypeError(value)
    return value.decode(errors="surrogateescape")


def _status(reply: Reply) -> str:
    return text(reply)


def _number(reply: Reply) -> int:
    if not isinstance(reply, int):
        raise TypeError(reply)
    return reply


def _items(reply: Reply) -> list[Reply]:
    if not isinstance(reply, list):
        raise TypeError(reply)
    return reply


def _jobs(reply: Reply) -> list[Job]:
    if reply is None or reply is NULL_ARRAY:
        return []
    return [_job(_items(each)) for each in _items(reply)]


def _job(row: list[Reply]) -> Job:
    queue, job_id, body, *counters = row
    if not isinstance(body, bytes):
        raise TypeError(body)
    return Job(text(job_id), text(queue), body, *map(_number, counters[1::2]))


def _facts(reply: Reply) -> Facts | None:
    if reply is None or reply is NULL_ARRAY:
        return None
    items = _items(reply)
    return {text(items[at]): items[at + 1] for at in range(0, len(items), 2)}


def _info(reply: Reply) -> dict[str, str]:
    lines = (line.partition(":") for line in text(reply).splitlines() if line[:1] != "#")
    return {name: value for name, colon, value in lines if colon}
