"""The reply to TRACE GET, as rows."""

import attrs

from disque_trio.tracing.rows import Row


@attrs.frozen
class TraceReply:
    """The rows of a job that one node has kept, in order."""

    rows: list[Row]
    why: str
    """The reason of the trace: sampled, queue, asked or trouble."""
    is_on: bool
    """Does the trace continue?"""
    is_here: bool
    """Does the node have the job now?"""
    omitted: int
    """The number of rows omitted after the first hundred."""
    last: int
    """The number of the last row; the next AFTER."""


def parse_trace_reply(reply: object, node: str) -> TraceReply | None:
    """Return the rows in a reply to TRACE GET, of RESP 2 or 3; None if the node has no trace of the
    job.

    `node` is the node's name in the rows. Raise TypeError, ValueError or KeyError for any other
    reply.
    """
    if reply is None:
        return None
    facts = _facts(reply)
    job, queue = _text(facts["id"]), _text(facts["queue"])
    rows = facts["rows"]
    if not isinstance(rows, list):
        raise TypeError(rows)
    return TraceReply(
        [_row(each, node, job, queue) for each in rows],
        _text(facts["why"]),
        bool(_number(facts["on"])),
        bool(_number(facts["here"])),
        _number(facts["omitted"]),
        _number(facts["last"]),
    )


def _facts(reply: object) -> dict[str, object]:
    if isinstance(reply, list):
        return {_text(name): value for name, value in zip(reply[::2], reply[1::2], strict=True)}
    items = getattr(reply, "items", None)
    if not isinstance(items, dict):
        raise TypeError(reply)
    return {_text(name): value for name, value in items.items()}


def _row(event: object, node: str, job: str, queue: str) -> Row:
    if not isinstance(event, list):
        raise TypeError(event)
    _, time, mono, kind, client, peer, cause, detail, *_ = event
    micros = _number(time)
    return Row(
        micros,
        _text(kind),
        node,
        job,
        queue,
        _text(client),
        _text(peer),
        _text(cause),
        _text(detail),
        mono=_number(mono),
        wall=micros // 1000,
    )


def _text(value: object) -> str:
    if not isinstance(value, bytes):
        raise TypeError(value)
    return value.decode("utf-8", "replace")


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(value)
    return value
