"""All routes of the API: dispatch, the document and the tests use this table."""

from collections.abc import Mapping, Sequence
from typing import Final

from disque_trio.web.api import auditing, jobs, operating, reading
from disque_trio.web.api.routes import Route

ROUTES: Final[Sequence[Route]] = (
    *reading.ROUTES, *jobs.ROUTES, *operating.ROUTES, *auditing.ROUTES,
)  # fmt: skip


def found(path: str) -> tuple[Mapping[str, Route], Mapping[str, str]]:
    """Return by method the routes of a path below the prefix, and the values of the names in the
    path. A path without names has precedence."""
    matches = [(each, match) for each in ROUTES if (match := each.pattern.fullmatch(path))]
    if not matches:
        return {}, {}
    best, match = min(matches, key=lambda each: len(each[0].places))
    return {each.method: each for each, _ in matches if each.path == best.path}, match.groupdict()
