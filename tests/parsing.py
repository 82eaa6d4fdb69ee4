from disque_trio.wire.requests import RequestParser


def all_requests(parser: RequestParser, data: bytes) -> list[list[bytes]]:
    """Every request that these bytes complete, whatever the size of the parser's pieces."""
    requests = parser.feed(data)
    assert len(requests) != 1 or not parser.pending
    while parser.pending:
        requests += parser.more()
    return requests
