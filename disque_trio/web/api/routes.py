"""What a route of the API is: one record, from which dispatch, checks and the document follow."""

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
"""Bytes of a body that has arguments."""
LARGE: Final = 1 << 20
"""Bytes of a body that has bodies of jobs."""
_HOLE: Final = re.compile(r"\{(\w+)\}")
_JOB: Final = r"D-[0-9a-f]{8}-(?:[A-Za-z0-9+/]|%2[FfBb]){24}-[0-9a-f]{4}(?:(?:@|%40)[^/]*)?"
"""In a path: the `/` that an id may have needs no escape, for its length is known."""
_SOME: Final = "[^/]+"
_UNESCAPED: Final = re.compile("%(?![0-9A-Fa-f]{2})")


@attrs.frozen
class Call:
    """One request, read and checked."""

    values: Mapping[str, Any]
    """Of the path, the query and the body; those that are not given are missing, or their
    defaults."""
    raw: bytes | None
    """The body, if it is no JSON but the body of a job."""
    user: Any
    ip: str


@attrs.frozen
class Reply:
    """What a route answers."""

    data: Json
    status: int = 200
    headers: tuple[Header, ...] = ()
    undelivered: Callable[[], Awaitable[None]] | None = None
    """Run if it cannot be sent."""


Handler = Callable[[Any, Call], Awaitable[Reply]]
"""Takes the `Api`. Raises `ProblemError`, `DisqueError` and `MistakeError`."""


@attrs.frozen(kw_only=True)
class Route:
    """One method of one path."""

    method: str
    path: str
    """Below `PREFIX`, with names in braces."""
    name: str
    """Of the operation in the document."""
    about: str
    right: str
    """`SEE` and so on, of `roles`."""
    answer: Handler
    places: tuple[Field, ...] = ()
    """The names in the path."""
    query: tuple[Field, ...] = ()
    body: tuple[Field, ...] = ()
    """The fields of a JSON object."""
    body_rules: tuple[Schema, ...] = ()
    """JSON Schemas that it fits as well."""
    has_raw: bool = False
    """May the body be the bytes of a job, with the fields in the query?"""
    reply: Schema = attrs.Factory(dict)
    status: int = 200
    has_conflicts: bool = False
    """May it be refused for what has become of a job, or because it must be meant (409)?"""
    most: int = SMALL
    waits: bool = False
    """May it take long? Then it ends when the other side hangs up."""
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
        """Does it take one?"""
        return self.method == "POST"

    def call(
        self, found: Mapping[str, str], query: str, kind: bytes, body: bytes, user: Any, ip: str
    ) -> Call:
        """The values of a request. Raises `ProblemError`."""
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
        raise ProblemError(400, "JSON", "the body is no JSON", "send an object: {…}") from None
    if not isinstance(found, dict):
        raise ProblemError(400, "JSON", "the body is no object", "send an object: {…}")
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
    """As HTTP."""
    body = (encoded(reply.data) if text is None else text).encode()
    return Response(reply.status, body, JSON, reply.headers, undelivered=reply.undelivered)
