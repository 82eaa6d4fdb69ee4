"""The parser of requests, for a node's side of the client protocol.

`RequestParser` has two paths with the same results. The fast one parses complete short requests in
canonical form, many at once (`canonical`). The strict one, `_parse`, handles the rest: inline
requests, long arguments, parts of requests, errors (original 1.2, 1.3).
"""

from typing import Final

from disque_trio.wire import canonical
from disque_trio.wire.resp import MAX_BULK, ProtocolError, integer
from disque_trio.wire.words import UnbalancedQuotesError, split

MAX_LINE: Final = 65_536
"""The maximum length of an inline request or of a header line."""
MAX_ELEMENTS: Final = 1_048_576
_SMALL: Final = 2048
"""Longer input is checked before it is split: it may be one long argument."""
_MANY: Final = 32
"""The number of line ends in its beginning from which it counts as many short arguments: the 200
ids of an ACKJOB then take a fifth of the time."""
_count_of: Final = canonical.ARRAY_SIZES.get
_fit: Final = canonical.fit
PIECE: Final = 1 << 14
"""How many bytes are parsed at a time. Requests take up to ten times the memory of their bytes, so
input is not parsed before its requests are needed."""
MOST_LINES: Final = 1536
"""The maximum number of lines of a piece, estimated from its beginning: that of 170 usual
ADDJOBs."""
_FEW: Final = 128
"""How many requests the strict path parses at a time."""
ARG_BYTES: Final = 48
"""The memory of an argument besides its text."""
_ASTERISK: Final = ord("*")
_NEVER_FIRST: Final = frozenset(range(0x100)).difference(b"\t\n\v\f\r", range(0x20, 0x7F))
"""Bytes with which no request begins, but other protocols such as TLS do."""
_BUS: Final = b"DbuZ"
"""The beginning of bus frames."""
_NO_REQUEST: Final = (
    b"ERR Protocol error: no request begins like this; for TLS, connect to the 'tls-port'"
)


class RequestParser:
    """Parses one client's bytes, in pieces of any size, into requests, a piece at a time.

    `feed` returns the requests that are found at once; `more` returns those of the next piece while
    `pending` is not 0. The caller handles them in order, and then checks `error`: the error in the
    bytes after those requests, after which there are no more. While its machine accepts no
    requests, a caller should call neither, and should not read from the socket.
    """

    __slots__ = (
        "_args", "_at", "_data", "_elements", "_most", "_needed", "_rest", "_taken", "buffered",
        "error", "pending",
    )  # fmt: skip

    def __init__(self, max_bulk: int = MAX_BULK) -> None:
        self._most = max_bulk
        """The maximum size of an argument, at least `canonical.SHORT`."""
        self.error: ProtocolError | None = None
        self.buffered = 0
        """The number of buffered bytes: of an incomplete request, or `pending`."""
        self.pending = 0
        """The number of bytes after the last piece, which `more` parses. While there are any, no
        request is incomplete."""
        self._data = b""
        """The bytes that end with the pending ones."""
        self._at = 0
        """The start of the pending bytes in `_data`."""
        self._args: list[bytes] = []
        self._elements = 0
        """The number of elements of the request being parsed; 0 between requests."""
        self._taken = 0
        """How many of its bytes have been parsed into `_args`."""
        self._rest = bytearray()
        self._needed = 0
        """How long `_rest` must be before it is parsed again."""

    @property
    def spare(self) -> int:
        """The bytes reserved for the rest of an incomplete request."""
        return max(0, self._rest.__alloc__() - len(self._rest))

    @property
    def weight(self) -> int:
        """The memory of all buffered input, in bytes."""
        args = self._taken + ARG_BYTES * len(self._args) if self._args else 0
        rest = self._rest.__alloc__() if self._rest else 0
        return len(self._data) + rest + args

    def feed(self, data: bytes) -> list[list[bytes]]:
        """Parse received bytes. Returns the requests that they complete if they are few; otherwise
        `more` returns them. While bytes are pending, these are appended, and the result is empty.
        """
        if self.buffered or self.error is not None:
            return self._resume(data)
        if len(data) > _SMALL:
            self._put_off(data, 0)
            return [] if data.count(b"\r\n", 0, _SMALL) >= _MANY else self.more()
        lines = data.split(b"\r\n")
        count = _count_of(lines[0])
        if count is not None and len(lines) == count + count + 2 and not lines[-1]:
            args = lines[2::2]
            if _fit(lines[1:-1:2], args):
                return [args]
        return self._split(lines)

    def more(self, most_lines: int = MOST_LINES) -> list[list[bytes]]:
        """The requests of the next piece of about `most_lines` lines. If there are none, no bytes
        are pending any longer."""
        requests: list[list[bytes]] = []
        ends = self._data.count(b"\r\n", self._at, self._at + _SMALL)
        if ends < _MANY and self.pending > _SMALL:
            before = self.pending
            requests = self._parse(*self._take_pending(), 1)
            if not self.pending:
                return requests
            if before - self.pending > _SMALL:
                return requests + self._parse(*self._take_pending(), _MANY)
        data, at = self._take_pending()
        end = at + min(PIECE, _SMALL * most_lines // max(ends, _MANY))
        lines = data[at:end].split(b"\r\n")
        if end >= len(data):
            return requests + self._split(lines)
        quick = canonical.take(lines)
        if not quick:
            return requests + self._parse(data, at, _FEW)
        self._put_off(data, end - sum(map(len, lines)) - 2 * len(lines) + 2)
        return requests + quick

    def _take_pending(self) -> tuple[bytes, int]:
        """Remove the pending bytes: returns an object that ends with them, and their start in
        it."""
        data, at = self._data, self._at
        self._data = b""
        self.buffered = self.pending = 0
        return data, at

    def _put_off(self, data: bytes, at: int) -> None:
        """Keep the bytes from `at` on for later."""
        if at > len(data) >> 1:
            data, at = data[at:], 0
        self._data, self._at = data, at
        self.buffered = self.pending = len(data) - at

    def _resume(self, data: bytes) -> list[list[bytes]]:
        """Complete one request by the strict path, then parse the bytes after it."""
        if self.error is not None:
            return []
        if self._data:
            self._put_off(self._data[self._at :] + data, 0)
            return []
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                self.buffered += len(data)
                return []
            data = bytes(self._rest)
            self._rest.clear()
        requests = self._parse(data, 0, 1)
        if self.pending:
            requests += self.more()
        return requests

    def _split(self, lines: list[bytes]) -> list[list[bytes]]:
        """Parse lines: by the fast path as far as possible, then by the strict path."""
        requests = canonical.take(lines)
        if len(lines) > 1 or lines[0]:
            requests += self._parse(b"\r\n".join(lines), 0, _FEW)
        return requests

    def _parse(self, data: bytes, at: int, most: int) -> list[list[bytes]]:
        """The strict path: parse requests one by one, to the end of the data or up to `most`."""
        requests: list[list[bytes]] = []
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
            # A copy without the traceback, whose frames refer to this parser and its input: a cycle
            # that the garbage collector would find late, because it is as old as the connection.
            self.error = ProtocolError(error.text)
            self._args = []
            self._taken = 0
            at = len(data)
        if at < len(data) and len(requests) == most:
            self._put_off(data, at)
        else:
            self._rest += memoryview(data)[at:]
            self.buffered = self._taken + len(self._rest)
        return requests

    def _begin(self, data: bytes, at: int, requests: list[list[bytes]]) -> int:
        """Parse an array header or an inline request. Returns the start of the next item."""
        if data[at] != _ASTERISK:
            if data[at] in _NEVER_FIRST or data.startswith(_BUS, at):
                raise ProtocolError(_NO_REQUEST)
            return _take_inline(data, at, requests)
        end = data.find(b"\r", at, at + MAX_LINE + 1)
        if end < 0:
            _expect_line_end(data, at, b"too big mbulk count string")
        if end < 0 or end + 2 > len(data):
            return at
        count = integer(data[at + 1 : end])
        if count is None or count > MAX_ELEMENTS:
            raise ProtocolError(b"ERR Protocol error: invalid multibulk length")
        if count > 0:
            self._elements = count
            self._taken = end + 2 - at
        return end + 2

    def _take_elements(self, data: bytes, at: int, requests: list[list[bytes]]) -> int:
        """Parse the complete elements, and the request if it is complete then. Returns the end of
        the last complete element."""
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
    """The line at `at` has no end yet: raise ProtocolError if it is too long."""
    if len(data) - at > MAX_LINE:
        raise ProtocolError(b"ERR Protocol error: " + complaint)


def _bulk_size(header: bytes, most: int) -> int:
    if header[:1] != b"$":
        # An empty header has no first byte; its CR is there.
        raise ProtocolError(b"ERR Protocol error: expected '$', got '%b'" % (header[:1] or b"\r"))
    size = integer(header[1:])
    if size is None or not 0 <= size <= most:
        raise ProtocolError(b"ERR Protocol error: invalid bulk length")
    return size


def _take_inline(data: bytes, at: int, requests: list[list[bytes]]) -> int:
    """Parse the line at `at` if it is complete. Returns the start of the next item."""
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
