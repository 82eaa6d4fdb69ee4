"""A request for each route that the route takes."""

import json
from typing import Any, Final

from disque_trio.observe.operations import OPERATIONS
from disque_trio.web.api.routes import PREFIX, Route
from tests.observe.arguments import GONE, needed

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
    return json.dumps({"arguments": needed(operation), "sure": True}).encode()
