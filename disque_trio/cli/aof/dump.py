"""`disque-trio aof dump`: every record, one on each line."""

from datetime import UTC, datetime
from typing import Any

from disque_trio.cli.aof.options import Dump
from disque_trio.cli.aof.outcomes import SOUND
from disque_trio.cli.aof.report import errors
from disque_trio.cli.aof.scan import scan
from disque_trio.cli.aof.source import Source
from disque_trio.cli.formats import quoted, text_of
from disque_trio.statemachine.base import STATE_NAMES
from disque_trio.statemachine.journaling import confirmed_in, described
from disque_trio.statemachine.messages import JobCopy
from disque_trio.statemachine.records import LoadJob, Record, StoredResult
from disque_trio.terminal.output import flush, json_text, say_lines


def dump(options: Dump) -> int:
    """Show the records as they are read."""
    line_of = _json_line if options.is_json else _line

    def show(records: list[Record]) -> None:
        lines = [line_of(record, has_body=options.has_bodies) for record in records]
        say_lines("".join(lines))

    source = Source(options.file)
    found = scan(source, "reading", show)
    source.close()
    flush()
    if found.status != SOUND:
        errors().print(f"disque-trio aof: {options.file}: {found.verdict}")
    return found.status


def _line(record: Record, *, has_body: bool) -> str:
    if isinstance(record, StoredResult):
        return " ".join(_of_result(record, has_body=has_body)) + "\n"
    if not isinstance(record, LoadJob):
        return " ".join(described(record)) + "\n"
    copy = record.copy
    words = [
        "LOADJOB",
        text_of(copy.id),
        _word(copy.queue),
        STATE_NAMES[copy.state].decode(),
        f"created={_created(copy)}",
        f"expires={_moment(copy.etime)}",
        f"retry={copy.retry}",
        f"delay={copy.delay}",
        f"replicate={copy.replicas}",
        f"nacks={copy.nacks}",
        f"additional-deliveries={copy.deliveries}",
        f"flags={copy.flags}",
        *([f"due={_moment(copy.due // 1000)}"] if copy.due else []),
        *[f"{name}={_word(v) if isinstance(v, bytes) else v}" for name, v in _extensions(copy)],
        *[f"{name}={','.join([id[:8] for id in ids])}" for name, ids in _holders(copy).items()],
        f"body={_word(bytes(copy.body))}" if has_body else f"bytes={len(copy.body)}",
    ]
    return " ".join(words) + "\n"


def _of_result(record: StoredResult, *, has_body: bool) -> list[str]:
    value = f"value={_word(record.value)}" if has_body else f"bytes={len(record.value)}"
    times = [f"at={_moment(record.at // 1000)}", f"until={_moment(record.until // 1000)}"]
    return ["RESULT", text_of(record.id), _word(record.queue), *times, value]


def _holders(copy: JobCopy) -> dict[str, list[str]]:
    """All of them, and those that have not confirmed their copies, if there are any."""
    holders = list(dict.fromkeys(copy.holders))
    confirmed = confirmed_in(copy.holders)
    found = {"holders": [text_of(id) for id in holders]}
    if confirmed is not None:
        found["unconfirmed"] = [text_of(id) for id in holders if id not in confirmed]
    return found


def _json_line(record: Record, *, has_body: bool) -> str:
    if isinstance(record, StoredResult):
        found: dict[str, Any] = {
            "record": "RESULT",
            "id": text_of(record.id),
            "queue": text_of(record.queue),
            "at": record.at,
            "until": record.until,
            "bytes": len(record.value),
        }
        if has_body:
            found["value"] = text_of(record.value)
        return json_text(found, is_compact=True) + "\n"
    if not isinstance(record, LoadJob):
        kind, what = described(record)
        entry = {"record": kind, "note" if kind == "NOTE" else "id": what}
        return json_text(entry, is_compact=True) + "\n"
    copy = record.copy
    facts: dict[str, Any] = {
        "record": "LOADJOB",
        "id": text_of(copy.id),
        "queue": text_of(copy.queue),
        "state": STATE_NAMES[copy.state].decode(),
        "created": _created(copy),
        "expires": _moment(copy.etime),
        "ctime": copy.ctime,
        "etime": copy.etime,
        "retry": copy.retry,
        "delay": copy.delay,
        "replicate": copy.replicas,
        "nacks": copy.nacks,
        "additional-deliveries": copy.deliveries,
        "flags": copy.flags,
        "gc-attempt": copy.gc_attempt,
        **_holders(copy),
        "bytes": len(copy.body),
    }
    if copy.due:
        facts["due"] = copy.due
    facts |= {name: text_of(v) if isinstance(v, bytes) else v for name, v in _extensions(copy)}
    if has_body:
        facts["body"] = text_of(bytes(copy.body))
    return json_text(facts, is_compact=True) + "\n"


def _extensions(copy: JobCopy) -> list[tuple[str, int | bytes]]:
    extensions = copy.extensions
    return [] if extensions is None else [(text_of(name), v) for name, v in extensions.fields]


def _word(value: bytes) -> str:
    return quoted(value).decode()


def _created(copy: JobCopy) -> str:
    """The creation stamp as a time, in nanoseconds; as a number beyond the year 9999."""
    return _moment(copy.ctime // 1_000_000_000)


def _moment(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(seconds)
