"""TLS clients of a node, for tests."""

import ssl

import trio

from tests.certificates import Authority, Signed
from tests.net.live import Live, connected
from tests.node.world import until

Stream = trio.SSLStream[trio.SocketStream]


async def client(node: Live, authority: Authority, signed: Signed | None = None) -> Stream:
    """A client with this certificate, or with none; nothing has been said yet."""
    context = ssl.create_default_context(cafile=authority.file)
    if signed is not None:
        context.load_cert_chain(signed.cert, signed.key)
    stream = await connected(node.nursery, node.tls_port)
    return trio.SSLStream(stream, context, server_hostname="localhost")


async def read(stream: Stream, size: int) -> bytes:
    data = b""
    with trio.fail_after(30):
        while len(data) < size and (piece := await stream.receive_some(1 << 20)):
            data += piece
    return data


async def is_refused(stream: Stream) -> bool:
    """Is there trouble where an answer is due?"""
    try:
        await stream.send_all(b"PING\r\n")
        await read(stream, 7)
    except trio.BrokenResourceError:
        return True
    return False


async def says(node: Live, event: str) -> None:
    await until(lambda: event in node.log.events())
