"""The client protocol, RESP, as it comes in: requests for a node, replies for clients.

`RequestParser` has two ways, which agree on every byte. The quick one takes short requests in
canonical form, whole or many at once (`canonical`). Everything else goes the strict way, in
`_parse`: inline requests, long arguments, parts of requests, mistakes (reference 1.2, 1.3).
"""

import sys
from collections.abc import Callable, Sequence
from typing import Final

from disque_trio.statemachine.base import NULL_ARRAY, Failure, Map, Reply, Set, Status
from disque_trio.wire import canonical
from disque_trio.wire.words import UnbalancedQuotesError, split

MAX_LINE: Final = 65_536
"""Bytes of an inline request or of a header before its line must end."""
MAX_ELEMENTS: Final = 1_048_576
MAX_BULK: Final = 512 << 20
MAX_DEPTH: Final = 32
"""Arrays in arrays, as far as a client reads them; a node's replies have four levels."""

_SMALL: Final = 2048
"""Longer input is looked at closely before it is split: it may be one long argument."""
_MANY: Final = 32
"""Line ends at its beginning that show it to be many short ones: 200 ids of an ACKJOB take a fifth
of the time."""
_count_of: Final = canonical.ARRAY_SIZES.get
_fit: Final = canonical.fit
_ASTERISK: Final = ord("*")


class ProtocolError(Exception):
    """What the other side sent is not RESP. `text` is the whole error, without the dash."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text.decode("latin-1"))
        self.text = text


class RequestParser:
    """Makes requests of one client's bytes, however they are cut.

    The caller carries out what `feed` returns, in order, and then looks at `error`: it is what is
    wrong with the bytes after those requests, and final, so that nothing comes out afterwards.
    Requests that the machine does not take yet are the caller's to keep; as long as it keeps any,
    it should not read on.
    """

    __slots__ = ("_args", "_elements", "_most", "_needed", "_rest", "_taken", "buffered", "error")

    def __init__(self, max_bulk: int = MAX_BULK) -> None:
        self._most = max_bulk
        """Bytes that one argument may have, `canonical.SHORT` at least."""
        self.error: ProtocolError | None = None
        self.buffered = 0
        """Bytes held of a request that is not complete."""
        self._args: list[bytes] = []
        self._elements = 0
        """How many elements the request being read has; 0 between requests."""
        self._taken = 0
        """Bytes of it that have become `_args`."""
        self._rest = bytearray()
        self._needed = 0
        """How long `_rest` must be for another look to be worth it."""

    @property
    def spare(self) -> int:
        """Bytes reserved for the rest of that request."""
        return max(0, self._rest.__alloc__() - len(self._rest))

    def feed(self, data: bytes) -> list[list[bytes]]:
        """The requests that these bytes complete."""
        if self.buffered or self.error is not None:
            return self._resume(data)
        if len(data) > _SMALL and data.count(b"\r\n", 0, _SMALL) < _MANY:
            return self._resume(data)
        lines = data.split(b"\r\n")
        count = _count_of(lines[0])
        if count is not None and len(lines) == count + count + 2 and not lines[-1]:
            args = lines[2::2]
            if _fit(lines[1:-1:2], args):
                return [args]
        return self._split(lines)

    def _resume(self, data: bytes) -> list[list[bytes]]:
        """Complete one request the strict way, then take what came behind it."""
        if self.error is not None:
            return []
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                self.buffered += len(data)
                return []
            data = self._take_rest()
        requests = self._parse(data, most=1)
        if requests and self._rest:
            behind = self._take_rest()
            if len(data) - len(behind) > _SMALL:
                requests += self._parse(behind, most=sys.maxsize)
            else:
                requests += self._split(behind.split(b"\r\n"))
        return requests

    def _take_rest(self) -> bytes:
        data = bytes(self._rest)
        self._rest.clear()
        self.buffered = 0
        return data

    def _split(self, lines: list[bytes]) -> list[list[bytes]]:
        """The quick way as far as it goes, then the strict way."""
        requests = canonical.take(lines)
        if len(lines) > 1 or lines[0]:
            requests += self._parse(b"\r\n".join(lines), most=sys.maxsize)
        return requests

    def _parse(self, data: bytes, most: int) -> list[list[bytes]]:
        """The strict way: one request after the other, to the end of the data or `most` of them."""
        requests: list[list[bytes]] = []
        at = 0
        self._needed = 0
        try:
            while at < len(data) and len(requests) < most:
                before = at
                if not self._elements:
                    at = self._begin(data, at, requests)
                if self._elements:
                    at = self._take_elements(data, at, requests)
                if at == before:
                    break
        except ProtocolError as error:
            # Without its traceback, whose frames hold this parser and what was sent: a cycle as old
            # as its connection, at which the collector hardly ever looks.
            self.error = ProtocolError(error.text)
            self._taken = 0
            at = len(data)
        self._rest += memoryview(data)[at:]
        self.buffered = self._taken + len(self._rest)
        return requests

    def _begin(self, data: bytes, at: int, requests: list[list[bytes]]) -> int:
        """Take an array header or an inline request. Where the next thing starts."""
        if data[at] != _ASTERISK:
            return _take_inline(data, at, requests)
        end = data.find(b"\r", at, at + MAX_LINE + 1)
        if end < 0:
            _expect_line_end(data, at, b"too big mbulk count string")
        if end < 0 or end + 2 > len(data):
            return at
        count = _integer(data[at + 1 : end])
        if count is None or count > MAX_ELEMENTS:
            raise ProtocolError(b"ERR Protocol error: invalid multibulk length")
        if count > 0:
            self._elements = count
            self._taken = end + 2 - at
        return end + 2

    def _take_elements(self, data: bytes, at: int, requests: list[list[bytes]]) -> int:
        """Take the elements that are here, and the request if that completes it."""
        args, elements = self._args, self._elements
        start, here = at, len(data)
        while len(args) < elements:
            end = data.find(b"\r", at, at + MAX_LINE + 1)
            if end < 0:
                _expect_line_end(data, at, b"too big bulk count string")
                break
            header = data[at:end]
            size = canonical.BULK_SIZES.get(header)
            if size is None:
                size = _bulk_size(header, self._most)
            after = end + size + 4
            if after > here:
                self._needed = after - at
                break
            args.append(data[end + 2 : after - 2])
            at = after
        else:
            requests.append(args)
            self._args = []
            self._elements = self._taken = 0
            return at
        self._taken += at - start
        return at


def _expect_line_end(data: bytes, at: int, complaint: bytes) -> None:
    """A line that begins at `at` has no end yet: may it still get one?"""
    if len(data) - at > MAX_LINE:
        raise ProtocolError(b"ERR Protocol error: " + complaint)


def _bulk_size(header: bytes, most: int) -> int:
    if header[:1] != b"$":
        # Only an empty header has no first byte, and what stands there then is its CR.
        raise ProtocolError(b"ERR Protocol error: expected '$', got '%b'" % (header[:1] or b"\r"))
    size = _integer(header[1:])
    if size is None or not 0 <= size <= most:
        raise ProtocolError(b"ERR Protocol error: invalid bulk length")
    return size


def _integer(text: bytes) -> int | None:
    """A signed 64-bit number in its shortest form, or None."""
    digits = text.removeprefix(b"-")
    if not digits.isdigit() or len(digits) > 19 or (digits[0] == 0x30 and text != b"0"):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def _take_inline(data: bytes, at: int, requests: list[list[bytes]]) -> int:
    """Take the line at `at`, unless its end has not come. Where the next thing starts."""
    end = data.find(b"\n", at, at + MAX_LINE + 1)
    if end < 0:
        _expect_line_end(data, at, b"too big inline request")
        return at
    try:
        words = split(data[at:end].removesuffix(b"\r"))
    except UnbalancedQuotesError:
        raise ProtocolError(b"ERR Protocol error: unbalanced quotes in request") from None
    if request := [word for word in words if word]:
        requests.append(request)
    return end + 1


def encode_request(args: Sequence[bytes]) -> bytes:
    """A request in canonical form."""
    lines = [b"*%d" % len(args)]
    for arg in args:
        lines += (canonical.bulk_header(len(arg)), arg)
    lines.append(b"")
    return b"\r\n".join(lines)


class ReplyParser:
    """Makes replies of a node's bytes, however they are cut. Types are kept apart."""

    __slots__ = ("_needed", "_open", "_rest")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._needed = 0
        """How long `_rest` must be for another look to be worth it."""
        self._open: list[tuple[bytes, int, list[Reply]]] = []
        """The arrays and maps being read, outermost first: how many items, and those here."""

    def feed(self, data: bytes) -> list[Reply]:
        """The replies that these bytes complete.

        Raises ProtocolError if they are not replies: nothing on this connection can be told
        apart any more, so it must be closed.
        """
        rest = self._rest
        rest += data
        if len(rest) < self._needed:
            return []
        whole = bytes(rest)
        replies: list[Reply] = []
        at = self._needed = 0
        while at < len(whole) and (after := self._take(whole, at, replies)) > at:
            at = after
        del rest[:at]
        return replies

    def _take(self, data: bytes, at: int, replies: list[Reply]) -> int:
        """Take the item at `at`, unless its end has not come. Where the next one starts."""
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
        """Give an item its place, and the arrays that it completes theirs."""
        while self._open:
            kind, count, items = self._open[-1]
            items.append(reply)
            if len(items) < count:
                return
            self._open.pop()
            reply = _KINDS_OF_MANY[kind](items)
        replies.append(reply)


def _length(text: bytes, most: int) -> int:
    length = _integer(text)
    if length is None or not 0 <= length <= most:
        raise ProtocolError(b"Protocol error: %a is no length" % text[:32])
    return length


def _number(text: bytes) -> int:
    number = _integer(text)
    if number is None:
        raise ProtocolError(b"Protocol error: %a is no number" % text[:32])
    return number


def _map(items: list[Reply]) -> Map:
    """A map of its keys and values in turn. Ours have no keys but bulk strings."""
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
