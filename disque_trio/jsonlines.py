"""Lines of logs in JSON: what a node and a worker write with `--log-format json`."""

import json
import time
from collections.abc import Mapping


def as_json(level: str, event: str, facts: Mapping[str, object], at: float | None = None) -> str:
    """A line of a level, an event and its facts; `at` is its Unix time, in place of now."""
    now = time.time() if at is None else at
    stamp = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1e6):06}Z"
    record = {**facts, "event": event, "level": level, "timestamp": stamp}
    return json.dumps(record, default=_shown)


def _shown(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:  # code of users
        return f"(a {type(value).__name__}, whose repr raised {type(error).__name__})"
