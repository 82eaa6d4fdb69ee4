"""The client protocol, RESP, on a client's side: encodes requests, parses replies.

The node's side is in `requests` and `replies`.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Final

from disque_trio.statemachine.base import NULL_ARRAY, Failure, Map, Reply, Set, Status
from disque_trio.wire import canonical

MAX_BULK: Final = 512 << 20
MAX_DEPTH: Final = 32
"""The maximum depth of nested arrays that a client accepts; a node's replies have four levels."""


_PLAIN_HEADER: Final = len(b":99999999\r\n")
"""The maximum length of a header that the fast path parses; such values are far below the
limits."""


class ProtocolError(Exception):
    """The other side has violated the protocol. `text` is the whole error, without the dash."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text.decode("latin-1"))
        self.text = text


def integer(text: bytes) -> int | None:
    """Parse a signed 64-bit number in its shortest form; None if it is invalid."""
    digits = text.removeprefix(b"-")
    if not digits.isdigit() or len(digits) > 19 or (digits[0] == 0x30 and text != b"0"):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def encode_request(args: Sequence[bytes]) -> bytes:
    """Encode a request in canonical form."""
    lines = [b"*%d" % len(args)]
    for arg in args:
        lines += (canonical.bulk_header(len(arg)), arg)
    lines.append(b"")
    return b"\r\n".join(lines)


class ReplyParser:
    """Parses a node's bytes, in pieces of any size, into replies."""

    __slots__ = ("_needed", "_open", "_rest")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._needed = 0
        """How long `_rest` must be before it is parsed again."""
        self._open: list[tuple[bytes, int, list[Reply]]] = []
        """The arrays and maps being parsed, outermost first: type, number of items, items so
        far."""

    def feed(self, data: bytes) -> list[Reply]:
        """The replies that these bytes complete.

        Raises ProtocolError if the bytes are not replies; then the connection must be closed,
        because the next reply cannot be found.
        """
        rest = self._rest
        rest += data
        if len(rest) < self._needed:
            return []
        whole = bytes(rest)
        replies: list[Reply] = []
        at = self._needed = 0
        while at < len(whole) and (after := self._take(whole, at, replies)) > at:
            at = self._take_plain(whole, after) if self._open else after
        del rest[:at]
        return replies

    def _take_plain(self, data: bytes, at: int) -> int:
        """A fast path for items of the innermost array that are strings or non-negative numbers,
        except its last item. Returns the start of the next item."""
        _, count, items = self._open[-1]
        for _ in range(count - len(items) - 1):
            end = data.find(b"\r\n", at, at + _PLAIN_HEADER)
            # Handles a line end in place of an item: the compiled form cannot slice backwards.
            text = data[at + 1 : end] if end > at else b""
            if not text.isdigit() or (text[0] == 0x30 and len(text) > 1):
                break
            number, kind = int(text), data[at]
            if kind == 0x24:  # $
                after = end + 4 + number
                if after > len(data):
                    break
                items.append(data[end + 2 : after - 2])
                at = after
            elif kind == 0x3A:  # :
                items.append(number)
                at = end + 2
            else:
                break
        return at

    def _take(self, data: bytes, at: int, replies: list[Reply]) -> int:
        """Parse the item at `at` if it is complete. Returns the start of the next item."""
        kind = data[at : at + 1]
        if kind not in _REPLY_KINDS:
            raise ProtocolError(b"Protocol error: no reply starts with %a" % kind)
        end = data.find(b"\r\n", at)
        if end < 0:
            return at
        text = data[at + 1 : end]
        if kind == b"$" and text != b"-1":
            after = end + 4 + _length(text, MAX_BULK)
            if after > len(data):
                self._needed = after - at
                return at
            self._put(data[end + 2 : after - 2], replies)
            return after
        if kind in b"*%~" and text not in (b"-1", b"0"):
            if len(self._open) == MAX_DEPTH:
                raise ProtocolError(b"Protocol error: too many arrays in arrays")
            count = _length(text, sys.maxsize)
            self._open.append((kind, 2 * count if kind == b"%" else count, []))
        else:
            self._put(_REPLY_KINDS[kind](text), replies)
        return end + 2

    def _put(self, reply: Reply, replies: list[Reply]) -> None:
        """Add an item to its array, and each array that is complete then to its own array."""
        while self._open:
            kind, count, items = self._open[-1]
            items.append(reply)
            if len(items) < count:
                return
            self._open.pop()
            reply = _KINDS_OF_MANY[kind](items)
        replies.append(reply)


def _length(text: bytes, most: int) -> int:
    length = integer(text)
    if length is None or not 0 <= length <= most:
        raise ProtocolError(b"Protocol error: %a is no length" % text[:32])
    return length


def _number(text: bytes) -> int:
    number = integer(text)
    if number is None:
        raise ProtocolError(b"Protocol error: %a is no number" % text[:32])
    return number


def _map(items: list[Reply]) -> Map:
    """A map from its keys and values in turn. Keys must be bulk strings."""
    pairs: dict[bytes, Reply] = {}
    for key, value in zip(items[::2], items[1::2], strict=True):
        if not isinstance(key, bytes):
            raise ProtocolError(b"Protocol error: a map's key is no bulk string")
        pairs[key] = value
    return Map(pairs)


def _empty_map(text: bytes) -> Reply:
    if text != b"0":
        raise ProtocolError(b"Protocol error: there is no null map")
    return Map({})


def _empty_set(text: bytes) -> Reply:
    if text != b"0":
        raise ProtocolError(b"Protocol error: there is no null set")
    return Set([])


def _null_bulk(_: bytes) -> None:
    return None


def _short_array(text: bytes) -> Reply:
    return [] if text == b"0" else NULL_ARRAY


_REPLY_KINDS: Final[dict[bytes, Callable[[bytes], Reply]]] = {
    b"+": Status,
    b"-": Failure,
    b":": _number,
    b"$": _null_bulk,
    b"*": _short_array,
    b"%": _empty_map,
    b"~": _empty_set,
}
_KINDS_OF_MANY: Final[dict[bytes, Callable[[list[Reply]], Reply]]] = {
    b"*": lambda items: items,
    b"%": _map,
    b"~": Set,
}
