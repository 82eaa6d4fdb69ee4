"""The OpenAPI 3.1 document, generated from the table of routes."""

import functools
import json
from copy import deepcopy
from http import HTTPStatus
from typing import Any, Final

from disque_trio import __version__
from disque_trio.observe.values import Json
from disque_trio.web.api.routes import PREFIX, Route
from disque_trio.web.api.schemas import TEXT, WHOLE, Field, record, shown
from disque_trio.web.api.table import ROUTES

_ABOUT: Final = (
    "What the pages of the console show and do, and jobs for programs without a Redis client. "
    "docs/http.md has examples."
)
_OF_ALL: Final = (400, 401, 403, 404, 405, 408, 413, 421, 422, 429, 431, 501, 502, 503, 504)
"""Statuses of errors that every route may return."""
_PROBLEM: Final = record(type=TEXT, title=TEXT, status=WHOLE, code=TEXT, detail=TEXT, advice=TEXT)


@functools.cache
def document() -> bytes:
    """Return the document as JSON."""
    return json.dumps(made(), separators=(",", ":")).encode()


def made() -> Json:
    """Return the document as a value."""
    paths: dict[str, Json] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "disque_trio", "version": __version__, "description": _ABOUT},
        "servers": [{"url": PREFIX}],
        "paths": paths,
        "security": [{"bearer": []}, {"basic": []}, {}],
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
            },
            "schemas": {"Problem": _PROBLEM},
        },
    }


def _operation(route: Route) -> Json:
    operation: Json = {
        "operationId": route.name,
        "summary": route.about,
        "description": f"Right: {route.right}.",
        "parameters": [
            *(_parameter(each, "path") for each in route.places),
            *(_parameter(each, "query") for each in route.query),
        ],
        "responses": _responses(route),
    }
    if route.has_body:
        operation["requestBody"] = _body(route)
    return operation


def _parameter(field: Field, place: str) -> Json:
    return {
        "name": field.name,
        "in": place,
        "description": field.about,
        "required": field.is_required,
        "schema": {name: each for name, each in shown(field).items() if name != "description"},
    }


def _body(route: Route) -> Json:
    schema = deepcopy(route.body_schema)  # callers may change the document
    content: dict[str, Any] = {"application/json": {"schema": schema}}
    if route.has_raw:
        content["application/octet-stream"] = {"schema": {}}
    is_needed = not schema.keys().isdisjoint(("required", "oneOf", "allOf"))
    return {"required": is_needed, "content": content}


def _responses(route: Route) -> Json:
    good = {"description": "Done.", "content": {"application/json": {"schema": route.reply}}}
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    found: Json = {str(route.status): good}
    for status in sorted([*_OF_ALL, *[409] * route.has_conflicts, *[415] * route.has_body]):
        found[str(status)] = {"description": HTTPStatus(status).phrase, "content": problem}
    return found
