"""Names, bodies and ids as plain JSON values."""

import base64
import json
from typing import Any, Final

from disque_trio.worker.operating.plans import MistakeError

Json = dict[str, Any]

BODY: Final = 4096
"""The number of bytes of a body that are shown."""
EDITED: Final = 16 << 10
"""The maximum size of a body that can be edited in a browser."""
_EXACT: Final = 1 << 53
"""Larger integers are inexact in a browser."""


def readable(name: str) -> str:
    """Return a name of the client as text, with bytes that are no UTF-8 as `\\xff`."""
    return raw(name).decode("utf-8", "backslashreplace")


def raw(name: str) -> bytes:
    """Return the bytes of a name of the client."""
    return name.encode("utf-8", "surrogateescape")


def name_fields(name: str, field: str = "name") -> Json:
    """Return a name, and its bytes in base64 if they are no UTF-8."""
    data = raw(name)
    try:
        return {field: data.decode()}
    except UnicodeDecodeError:
        return {field: readable(name), f"{field}_b64": base64.b64encode(data).decode()}


def given_name(args: Json, field: str = "name") -> str:
    """Return the name that a browser has sent, in the form of the client. Raise `MistakeError`."""
    if isinstance(coded := args.get(f"{field}_b64"), str):
        try:
            return base64.b64decode(coded, validate=True).decode("utf-8", "surrogateescape")
        except ValueError:
            raise MistakeError(f"'{field}_b64' is no base64") from None
    return word(args, field)


def word(args: Json, field: str) -> str:
    """Return a text that must be given. Raise `MistakeError`."""
    value = args.get(field)
    if not isinstance(value, str) or not value:
        raise MistakeError(f"'{field}' is missing")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise MistakeError(f"'{field}' is no text")
    return value


def body_fields(body: bytes | None, most: int = BODY) -> Json:
    """Return the first `most` bytes of a body, as text or in base64."""
    if body is None:
        return {"body": None, "body_b64": None, "bytes": None}
    some = body[:most]
    try:
        text = some.decode()
    except UnicodeDecodeError as error:
        if error.start < len(some) - 3 or len(body) <= most:
            return {"body": None, "body_b64": base64.b64encode(some).decode(), "bytes": len(body)}
        text = some[: error.start].decode()  # the cut was within a character
    return {"body": text, "body_b64": None, "bytes": len(body)}


def exact(value: Any) -> Any:
    """Return the value, with integers that a browser would round as text."""
    if isinstance(value, dict):
        return {name: exact(each) for name, each in value.items()}
    if isinstance(value, list):
        return [exact(each) for each in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT:
        return str(value)
    return value


def encoded(value: Any) -> str:
    """Return the value as one line of JSON in ASCII, so that no name can break the line."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
