"""How replies look: formatted for people, raw for pipes, JSON for programs.

Each form is a function from a request and its reply to bytes without the final newline; the
request is there because Disque's replies do not say whether an array holds names and values, or
a bulk string lines of text.
"""

import json
from collections.abc import Callable, Sequence
from typing import Final

from disque_trio.statemachine.base import Failure, Map, Reply, Set, Spilled, Status
from disque_trio.terminal.escapes import printable_lines

Form = Callable[[Sequence[bytes], Reply], bytes]

Json = str | int | None | list["Json"] | dict[str, "Json"]

_PAIRS: Final = frozenset({b"SHOW", b"QSTAT", b"CONFIG GET"})
"""Commands that answer names and values in turn."""
_TEXTS: Final = frozenset(
    {
        b"INFO",
        b"CLUSTER INFO",
        b"CLUSTER NODES",
        b"CLIENT LIST",
        b"DEBUG STRUCTSIZE",
        b"LATENCY DOCTOR",
        b"LATENCY GRAPH",
    }
)
"""Commands that answer lines of text, shown without quotes."""

_CONTROLS: Final = {7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 13: b"\\r"}
_ESCAPES: Final = {
    **{byte: b"\\x%02x" % byte for byte in (*range(32), *range(127, 256))},
    **_CONTROLS,
    ord('"'): b'\\"',
    ord("\\"): b"\\\\",
}
_QUOTED: Final = [_ESCAPES.get(byte, bytes([byte])) for byte in range(256)]


def for_people(args: Sequence[bytes], reply: Reply) -> bytes:
    """The reply as redis-cli shows it on a terminal."""
    if isinstance(reply, bytes) and _is_any(args, _TEXTS):
        return _shown(reply.rstrip(b"\r\n").replace(b"\r\n", b"\n"))
    return _formatted(reply, margin=0)


def _shown(text: bytes) -> bytes:
    """A node's own text, without what would command the terminal."""
    return printable_lines(text.decode(errors="backslashreplace")).encode()


def _is_any(args: Sequence[bytes], names: frozenset[bytes]) -> bool:
    words = [word.upper() for word in args[:2]]
    return words[0] in names or b" ".join(words) in names


def _formatted(reply: Reply, *, margin: int) -> bytes:
    match reply:
        case Status(text):
            return _shown(text)
        case Failure(text):
            return b"(error) " + _shown(text)
        case int():
            return b"(integer) %d" % reply
        case bytes() | Spilled():
            return quoted(bytes(reply))
        case []:
            return b"(empty array)"
        case list():
            return _numbered(reply, margin)
        case Map() | Set():
            return _formatted(_flat(reply), margin=margin)
        case _:
            return b"(nil)"


def _flat(reply: Map | Set) -> list[Reply]:
    """The items; of a map names and values in turn, as SHOW and the others answer them."""
    if isinstance(reply, Set):
        return reply.items
    return [part for pair in reply.items.items() for part in pair]


def _numbered(items: list[Reply], margin: int) -> bytes:
    width = len(str(len(items)))
    lines = [
        b"%*d) %b" % (width, number, _formatted(item, margin=margin + width + 2))
        for number, item in enumerate(items, 1)
    ]
    return (b"\n" + b" " * margin).join(lines)


def quoted(data: bytes) -> bytes:
    """Printable, in double quotes, such that typing it gives the same bytes again."""
    return b'"' + b"".join([_QUOTED[byte] for byte in data]) + b'"'


def for_pipes(_args: Sequence[bytes], reply: Reply) -> bytes:
    """The bare bytes of a reply; the items of an array, nested or not, one on each line."""
    return _bare(reply)


def _bare(reply: Reply) -> bytes:
    match reply:
        case Status(text) | Failure(text):
            return text
        case int():
            return b"%d" % reply
        case bytes() | Spilled():
            return bytes(reply)
        case list():
            return b"\n".join([_bare(item) for item in reply])
        case Map() | Set():
            return _bare(_flat(reply))
        case _:
            return b""


def for_programs(args: Sequence[bytes], reply: Reply) -> bytes:
    """The reply as one JSON value on one line; names and values in turn become an object."""
    value = _plain(reply)
    if isinstance(value, list) and _is_any(args, _PAIRS):
        value = {str(name): item for name, item in zip(value[::2], value[1::2], strict=False)}
    return _dump(value)


def _plain(reply: Reply) -> Json:
    match reply:
        case Status(text):
            return text_of(text)
        case Failure(text):
            return {"error": text_of(text)}
        case int():
            return reply
        case bytes() | Spilled():
            return text_of(bytes(reply))
        case list():
            return [_plain(item) for item in reply]
        case Map(items):
            return {text_of(name): _plain(item) for name, item in items.items()}
        case Set(items):
            return _plain(items)
        case _:
            return None


def text_of(data: bytes) -> str:
    """The text in UTF-8 if it is valid; otherwise one character for each byte (Latin-1).

    Lone surrogates would distinguish the two, but many JSON readers refuse or replace them.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _dump(value: Json) -> bytes:
    """JSON text in UTF-8, on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
