"""Large answers: encoded row by row, and sent in pieces as fast as the browser reads them.

All browsers with the same question share one text. Each needs a copy of only the piece being sent.
"""

from collections.abc import Iterator
from typing import Final

import trio
from trio_websocket import WebSocketConnection
from wsproto.events import TextMessage

from disque_trio.observe.values import Json, encoded

PIECE: Final = 1 << 16
"""The number of characters of a fragment, and of the rows encoded in one turn of the node's
loop."""


async def encoded_in_turns(value: Json) -> str:
    """Return the same as `encoded`. The node's loop runs after each `PIECE` characters of rows."""
    fields, since = [], 0
    for name, each in value.items():
        if not isinstance(each, list):
            fields.append(f"{encoded(name)}:{encoded(each)}")
            continue
        rows = []
        for row in each:
            rows.append(encoded(row))
            since += len(rows[-1])
            if since >= PIECE:
                since = 0
                await trio.lowlevel.checkpoint()
        fields.append(f"{encoded(name)}:[{','.join(rows)}]")
    return f"{{{','.join(fields)}}}"


async def send(socket: WebSocketConnection, *texts: str) -> None:
    """Send one message that consists of these texts. After the cancellation of a large one, the
    socket cannot be used again."""
    if sum(map(len, texts)) <= PIECE:
        await socket.send_message("".join(texts))
        return
    for piece, is_last in _pieces(texts):
        # The library has no method for fragments. Pings and the close may come between them.
        await socket._send(TextMessage(data=piece, message_finished=is_last))


def _pieces(texts: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    last = len(texts) - 1
    for number, text in enumerate(texts):
        for start in range(0, max(len(text), 1), PIECE):
            yield text[start : start + PIECE], number == last and start + PIECE >= len(text)
