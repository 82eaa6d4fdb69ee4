"""A page of another site, in a real browser, that tries to give commands to a node."""

from functools import partial

import pytest
import trio

from disque_trio.statemachine.config import Config
from tests.net.live import Live, live
from tests.node.world import until
from tests.web.chromium import devtools

BODY = "ADDJOB mails from-a-page 0\\r\\nCONFIG SET protected-mode no\\r\\nSHUTDOWN\\r\\n"
TRIES = {
    "fetch": """fetch(URL, {method: "POST", mode: "no-cors", body: BODY}).catch(() => 0)""",
    "beacon": """navigator.sendBeacon(URL, new Blob([BODY], {type: "text/plain"}))""",
    "put": """fetch(URL, {method: "PUT", body: BODY}).catch(() => 0)""",
    "socket": """new Promise((done) => { new WebSocket(URL.replace("http", "ws")).onerror = done })
        .then(() => 1)""",
    "form": """(() => {
        document.body.innerHTML = `<form method="post" enctype="text/plain" action="${URL}">
            <textarea name="a"></textarea></form>`;
        document.querySelector("textarea").value = BODY;
        document.querySelector("form").submit();
    })()""",
}


@pytest.mark.parametrize("password", [b"", b"hush"])
@pytest.mark.parametrize("script", TRIES.values(), ids=TRIES)
async def test_a_web_page_gives_no_commands(
    nursery: trio.Nursery, browser: str, script: str, password: bytes
) -> None:
    node = await live(nursery, Config(requirepass=password))
    serve = partial(trio.serve_tcp, _page, 0, host="127.0.0.1")
    [page] = await nursery.start(serve)
    async with devtools.tab(browser) as tab:
        await tab.open(f"http://evil.example:{page.socket.getsockname()[1]}/")

        names = f'const URL = "http://evil.example:{node.port}/", BODY = "{BODY}";'
        await tab.run(f"(() => {{ {names} return {script}; }})()")
        await until(lambda: _was_expelled(node))

    assert not node.node.state.jobs
    assert node.node.state.config.protected_mode
    assert node.node.life.shutdown is None


def _was_expelled(node: Live) -> bool:
    return node.node.state.stats.connections_rejected.get("http", 0) > 0


async def _page(stream: trio.SocketStream) -> None:
    async with stream:
        await stream.receive_some()
        page = b"<!DOCTYPE html><title>evil</title><body></body>"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"
        await stream.send_all(head + b"Content-Length: %d\r\n\r\n" % len(page) + page)
