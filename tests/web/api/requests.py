"""A request for each route that the route takes."""

import json
from typing import Any, Final

from disque_trio.observe.operations import OPERATIONS
from disque_trio.web.api.routes import PREFIX, Route

GONE: Final = "D-8177b338-LqqjKhrCd8pvOoKUXAoQsvOn-05a1"
"""The id of a job that no node has."""
_GIVEN: Final[dict[str, Any]] = {
    "id": GONE,
    "address": "127.0.0.1:1",
    "client": "1",
    "concurrency": 1,
    "cron": "* * * * *",
}
"""Values of arguments that are not just any text."""
_BODIES: Final[dict[str, Any]] = {
    "addJob": {"body": "x", "replicate": 1},
    "addJobs": {"jobs": [{"queue": "mail", "body": "x", "replicate": 1}]},
    "lease": {"queues": ["mail"]},
    **{name: {"jobs": [GONE]} for name in ("ackAll", "nackAll", "releaseAll")},
}


def path_of(route: Route, id: str = GONE) -> str:
    return PREFIX + route.path.replace("{queue}", "mail").replace("{id}", id)


def body_of(route: Route) -> bytes:
    """Empty for a route that takes none."""
    if not route.has_body:
        return b""
    operation = OPERATIONS.get(" ".join(route.path.split("/")[2:]))
    if operation is None:
        return json.dumps(_BODIES.get(route.name, {})).encode()
    given = {
        each.name: _GIVEN.get(each.name, "x")
        for each in operation.arguments
        if each.is_required or each.name in _GIVEN
    }
    return json.dumps({"arguments": given, "sure": True}).encode()
