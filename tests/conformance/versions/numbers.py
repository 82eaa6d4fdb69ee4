"""All numbers and words in use in what nodes send and write."""

from typing import Any, Final

import attrs

from disque_trio.statemachine import base, extensions, key_facts, messages
from disque_trio.tracing.rows import Row
from disque_trio.wire import extensions as fields
from disque_trio.wire import framed, frames, jobs

_CAPABILITIES: Final = (
    "BATCHES", "MEETS", "LISTS", "EXTENDS", "PURGES", "CLAIMS", "BURIES", "POSTPONES", "SNOOZES",
    "ZONES", "LONG_WAITS", "ERRORS", "RESULTS", "LIMITS", "WATCHES", "DIGESTS",
)  # fmt: skip
_NODE_FLAGS: Final = (
    "PFAIL", "FAIL", "MYSELF", "HANDSHAKE", "NOADDR", "MEET", "DELETED", "LEAVING",
)  # fmt: skip


def _bit(kind: type[messages.BusMessage], name: str) -> int:
    [bit] = [part.bit for part in kind.LAYOUT if part.name == name]
    return bit


_MARKS: Final = {
    "NO_REPLY": messages.ReplJob.NO_REPLY,
    "INCR_NACKS": _bit(messages.Queued, "nack") & messages.Postponed.NEW,
    "INCR_DELIVERIES": _bit(messages.Queued, "redelivery"),
    "TOLD": _bit(messages.Queued, "told"),
    "MORE": messages.YourJobs.MORE,
    "WAITS": _bit(messages.NeedJobs, "waits"),
    "DEAD": _bit(messages.Purge, "dead"),
    "SNOOZED": messages.Postponed.SNOOZED,
}
_EXTENSIONS: Final = {
    each.name.upper().replace("_", ""): each.number
    for each in sorted(extensions.FIELDS, key=lambda each: each.number)
}


def _named(module: object, names: tuple[str, ...]) -> dict[str, int]:
    return {name: getattr(module, name) for name in names}


def numbers() -> dict[str, Any]:
    """By part, name and number. Of lists the place is the number."""
    return {
        "capabilities": _named(base, _CAPABILITIES),
        "all capabilities": base.CAPABILITIES,
        "node flags": _named(base, _NODE_FLAGS),
        "message flags": _MARKS,
        "messages": dict(
            sorted(
                ((kind.__name__, writer[0]) for kind, writer in frames._WRITERS.items()),
                key=lambda each: each[1],
            )
        ),
        "key words": list(key_facts.KEY_WORDS),
        "key states": [state.decode() for state in key_facts.KEY_STATES],
        "key marks": key_facts.KEY_MARKS,
        "cancels": list(key_facts.CANCELS),
        "extensions": {"DUE": fields.DUE, **_EXTENSIONS},
        "follows": _named(extensions, ("FOLLOWS", "HAS_FOLLOWED")),
        "job states": [state.decode() for state in base.STATE_NAMES],
        "stored job flags": _named(
            base, ("BCAST_QUEUED", "BCAST_WILLQUEUE", "DELIVERED", "QUEUED_ONCE", "RECORDED")
        ),
        "records": sorted(kind[2:].decode() for kind in framed._KINDS),
        "layouts and sizes": {
            "journal": framed.MAGIC.decode(),
            "record": framed._HEAD.size,
            "frame": frames._HEADER.size,
            "job": jobs._FIXED.size,
        },
        "row": [field.name for field in attrs.fields(Row)],
    }
