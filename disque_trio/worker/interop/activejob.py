"""Reads jobs of Rails' ActiveJob, which Sidekiq and Resque wrap into a job of their own class.

The only argument of the wrapper contains the name of the actual class and its arguments, in the
encoding of ActiveJob: maps with additional keys that begin with `_aj_`.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from disque_trio.worker.envelope import BadBodyError

_OWN: Final = "_aj_"
_KEYWORDS: Final = "_aj_ruby2_keywords"
_RECORD: Final = "_aj_globalid"
_OBJECT: Final = "_aj_serialized"


@attrs.frozen
class Wrapped:
    """The content of a wrapper."""

    name: str
    args: list[Any]
    kwargs: dict[str, Any]
    key: str
    """`job_id`; empty if there is none."""
    executions: int
    """The number of earlier runs by ActiveJob."""


def wrapped(fields: dict[str, Any]) -> Wrapped | None:
    """The job in the fields of a wrapper; None if they are no wrapper. Raises `BadBodyError`."""
    match fields:
        case {
            "class": str(wrapper),
            "args": [{"job_class": str(name), "arguments": list(arguments), **job}],
        } if wrapper.endswith("Wrapper"):
            args = [_value(each) for each in arguments]
            kwargs: dict[str, Any] = {}
            if arguments and _is_keywords(arguments[-1]):
                kwargs = args.pop()
            return Wrapped(name, args, kwargs, _key(job), _executions(job))
    return None


def _is_keywords(argument: Any) -> bool:
    return isinstance(argument, dict) and _KEYWORDS in argument


def _value(encoded: Any) -> Any:
    """The value of an argument: symbols and times as text, durations as numbers, records as their
    global ids, and hashes without ActiveJob's additional keys."""
    match encoded:
        case list():
            return [_value(each) for each in encoded]
        case {"_aj_globalid": id}:
            return id
        case {"_aj_serialized": _, "value": value}:
            return _value(value)
        case {"_aj_serialized": kind}:
            raise BadBodyError(f"unreadable: an argument that {kind} of ActiveJob has written")
        case dict():
            return {key: _value(each) for key, each in encoded.items() if not key.startswith(_OWN)}
    return encoded


def _key(job: Mapping[Any, Any]) -> str:
    id = job.get("job_id")
    return id if isinstance(id, str) else ""


def _executions(job: Mapping[Any, Any]) -> int:
    count = job.get("executions")
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0
