"""The route of the API: one record, from which dispatch, checks and the document follow."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import attrs

from disque_trio.observe.values import Json, encoded
from disque_trio.web.api.schemas import (
    Field,
    Schema,
    checked,
    closed,
    filled,
    read,
    twice,
)
from disque_trio.web.messages import JSON, Header, Response
from disque_trio.web.problems import ProblemError

ROOT: Final = "/api"
PREFIX: Final = f"{ROOT}/v1"
SMALL: Final = 64 << 10
"""The maximum size of a body with arguments."""
LARGE: Final = 1 << 20
"""The maximum size of a body with bodies of jobs."""
_HOLE: Final = re.compile(r"\{(\w+)\}")
_JOB: Final = r"D-[0-9a-f]{8}-(?:[A-Za-z0-9+/]|%2[FfBb]){24}-[0-9a-f]{4}(?:(?:@|%40)[^/]*)?"
"""A job's id in a path. Its length is fixed, so that a `/` in it needs no escape."""
_SOME: Final = "[^/]+"
_UNESCAPED: Final = re.compile("%(?![0-9A-Fa-f]{2})")


@attrs.frozen
class Call:
    """One request, parsed and checked."""

    values: Mapping[str, Any]
    """Values from the path, the query and the body. A missing value is absent, or has its
    default."""
    raw: bytes | None
    """The body, if it is the body of a job and no JSON."""
    user: Any
    ip: str


@attrs.frozen
class Reply:
    """The result of a route."""

    data: Json
    status: int = 200
    headers: tuple[Header, ...] = ()
    undelivered: Callable[[], Awaitable[None]] | None = None
    """Called if the reply cannot be sent."""


Handler = Callable[[Any, Call], Awaitable[Reply]]
"""A handler. The first argument is the `Api`. It may raise `ProblemError`, `DisqueError` and
`MistakeError`."""


@attrs.frozen(kw_only=True)
class Route:
    """One method of one path."""

    method: str
    path: str
    """The path below `PREFIX`, with names in braces."""
    name: str
    """The name of the operation in the document."""
    about: str
    right: str
    """A right of `roles`, such as `SEE`."""
    answer: Handler
    places: tuple[Field, ...] = ()
    """The fields in the path."""
    query: tuple[Field, ...] = ()
    body: tuple[Field, ...] = ()
    """The fields of the JSON object in the body."""
    body_rules: tuple[Schema, ...] = ()
    """Further JSON Schemas that the body must match."""
    has_raw: bool = False
    """May the body be the bytes of a job, with the fields in the query?"""
    reply: Schema = attrs.Factory(dict)
    status: int = 200
    has_conflicts: bool = False
    """May it return 409, because of the state of a job or a missing confirmation?"""
    most: int = SMALL
    waits: bool = False
    """May the answer take long? If so, it is cancelled when the other side closes the
    connection."""
    pattern: re.Pattern[str] = attrs.field(init=False, repr=False)
    query_schema: Schema = attrs.field(init=False, repr=False)
    body_schema: Schema = attrs.field(init=False, repr=False)

    @pattern.default
    def _compiled(self) -> re.Pattern[str]:
        parts = _HOLE.split(self.path)
        holes = [f"(?P<{name}>{f'{_JOB}|' * (name == 'id')}{_SOME})" for name in parts[1::2]]
        texts = [re.escape(each) for each in parts[::2]]
        return re.compile(
            "".join(text + hole for text, hole in zip(texts, [*holes, ""], strict=True))
        )

    @query_schema.default
    def _of_query(self) -> Schema:
        return closed(self.query)

    @body_schema.default
    def _of_body(self) -> Schema:
        return closed(self.body, *self.body_rules)

    @property
    def has_body(self) -> bool:
        """Does the route take a body?"""
        return self.method == "POST"

    def call(
        self, found: Mapping[str, str], query: str, kind: bytes, body: bytes, user: Any, ip: str
    ) -> Call:
        """Parse and check a request. Raise `ProblemError`."""
        values = {each.name: read(_text(found[each.name], each.name), each) for each in self.places}
        is_raw = self.has_raw and kind != JSON
        values |= self._queried(query)
        if self.has_body and not is_raw:
            values |= checked(_object(body), self.body_schema, "")
        return Call(values, body if is_raw else None, user, ip)

    def _queried(self, query: str) -> Json:
        known, values = {each.name: each for each in self.query}, {}
        for pair in filter(None, query.split("&")):
            name, _, value = pair.partition("=")
            name = _text(name.replace("+", " "), name)
            text = _text(value.replace("+", " "), name)
            if name not in known:
                names = ", ".join(known) or "none"
                raise ProblemError.invalid(name, text, f"the parameters here are: {names}")
            if name in values:
                raise twice(name, text)
            values[name] = read(text, known[name])
        return filled(values, self.query_schema)


def _text(part: str, name: str) -> str:
    if _UNESCAPED.search(part):
        raise ProblemError.invalid(name, part, "write a percent sign as %25")
    return unquote_to_bytes(part).decode("utf-8", "surrogateescape")


def _object(body: bytes) -> Json:
    if not body:
        return {}
    try:
        found = json.loads(body, parse_constant=_no_number, object_pairs_hook=_members)
    except (ValueError, RecursionError):
        raise ProblemError(
            400, "JSON", "the body is not valid JSON", "send an object: {…}"
        ) from None
    if not isinstance(found, dict):
        raise ProblemError(400, "JSON", "the body is not an object", "send an object: {…}")
    return found


def _members(pairs: list[tuple[str, Any]]) -> Json:
    found: Json = {}
    for name, value in pairs:
        if name in found:
            raise twice(name, value)
        found[name] = value
    return found


def _no_number(word: str) -> None:
    raise ValueError(word)


def response(reply: Reply, text: str | None = None) -> Response:
    """Return the HTTP response for a reply."""
    body = (encoded(reply.data) if text is None else text).encode()
    return Response(reply.status, body, JSON, reply.headers, undelivered=reply.undelivered)
