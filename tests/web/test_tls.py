"""The web port with TLS."""

import json
import ssl
from pathlib import Path

import trio
from trio_websocket import open_websocket

from disque_trio.web.upgrade import PROTOCOL
from tests.certificates import Authority, tls_config
from tests.web.asking import everything, taken_apart, web
from tests.web.browser import Browser, Console, console


async def secured(nursery: trio.Nursery, place: Path) -> tuple[Console, ssl.SSLContext]:
    authority = Authority(place, "ours")
    own = authority.sign()
    here = await console(
        nursery, web_tls=True, tls_cert_file=own.cert, tls_key_file=own.key, requirepass=b"sesame"
    )
    return here, ssl.create_default_context(cafile=authority.file)


async def test_pages_and_sockets_go_over_tls(nursery: trio.Nursery, tmp_path: Path) -> None:
    here, context = await secured(nursery, tmp_path)
    origin = f"https://127.0.0.1:{here.port}"
    form = f"POST /login HTTP/1.1\r\nHost: 127.0.0.1:{here.port}\r\nOrigin: {origin}\r\n"
    form += "Connection: close\r\nContent-Length: 15\r\n\r\npassword=sesame"
    stream = await trio.open_ssl_over_tcp_stream(
        "127.0.0.1", here.port, ssl_context=context, https_compatible=True
    )
    async with stream:
        await stream.send_all(form.encode())
        answer = taken_apart(await everything(stream))

    cookie = answer.headers["set-cookie"]
    assert answer.status == 303
    assert cookie.startswith("__Host-disque-")
    assert cookie.endswith("; Secure")
    headers = [(b"Origin", origin.encode()), (b"Cookie", cookie.partition(";")[0].encode())]
    async with open_websocket(
        "127.0.0.1", here.port, "/socket", use_ssl=context, subprotocols=[PROTOCOL],
        extra_headers=headers,
    ) as socket:  # fmt: skip
        browser = Browser(socket)
        assert (await browser.see("overview"))["nodes"][0]["state"] == "up"


async def test_a_node_whose_clients_speak_tls_asks_itself_from_within(
    nursery: trio.Nursery, tmp_path: Path
) -> None:
    clients, nodes = Authority(tmp_path, "clients"), Authority(tmp_path, "nodes")
    # The node would refuse its own certificate if it came as a client.
    node = await web(nursery, tls_config(clients, nodes.sign(is_expired=True), port=0))

    overview = json.loads((await node.ask("/api/v1/overview")).body)
    job = json.dumps({"body": "x"}).encode()
    kind = "Content-Type: application/json"
    added = await node.ask("/api/v1/queues/q/jobs", kind, method="POST", body=job)

    assert [each["state"] for each in overview["nodes"]] == ["up"]
    assert added.status == 201


async def test_who_speaks_no_tls_is_let_go(nursery: trio.Nursery, tmp_path: Path) -> None:
    here, context = await secured(nursery, tmp_path)

    async with await trio.open_tcp_stream("127.0.0.1", here.port) as stream:
        await stream.send_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"HTTP" not in await everything(stream)
    async with await trio.open_ssl_over_tcp_stream(
        "127.0.0.1", here.port, ssl_context=context
    ) as secure:
        await secure.do_handshake()


async def test_leases_wait_over_tls_and_end_with_the_connection(
    nursery: trio.Nursery, tmp_path: Path
) -> None:
    here, context = await secured(nursery, tmp_path)
    body = b'{"queues": ["mail"], "timeout": 30}'
    head = (
        f"POST /api/v1/jobs/lease HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sesame\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()

    async def ask() -> trio.SSLStream[trio.SocketStream]:
        stream = await trio.open_ssl_over_tcp_stream(
            "127.0.0.1", here.port, ssl_context=context, https_compatible=True
        )
        await stream.send_all(head + body)
        return stream

    async def waiters(count: int) -> None:
        while int((await here.client.info("clients"))["blocked_clients"]) != count:
            await trio.sleep(0.01)

    with trio.fail_after(60):
        await trio.aclose_forcefully(await ask())
        await waiters(0)
        async with await ask() as stream:
            await waiters(1)
            await here.client.addjob("mail", "one", replicate=1)
            assert b'"body":"one"' in await stream.receive_some()
            await stream.send_all(head + body)  # the connection goes on
            await waiters(1)
            await here.client.addjob("mail", "two", replicate=1)
            assert b'"body":"two"' in await stream.receive_some()
        await waiters(0)
