"""What a stranger tries at the web port of a console, and does not get."""

import random
from typing import Any

import pytest
import trio
import trio.testing
from trio_websocket import ConnectionClosed

from disque_trio.statemachine.config import Config
from disque_trio.web import http_server, subscriptions, upgrade
from disque_trio.web.auth import SESSION_S, WRONG_MOST, Authenticator
from disque_trio.web.http_server import Connection
from disque_trio.web.messages import Request, Response
from tests.web.asking import everything
from tests.web.browser import console

SECRET: dict[str, Any] = {"requirepass": b"sesame"}


# The page that asks.


async def test_a_page_of_the_console_opens_the_socket(nursery: trio.Nursery) -> None:
    here = await console(nursery)

    assert await here.knock(f"Origin: {here.origin}") == 101


async def test_a_page_of_another_site_does_not(nursery: trio.Nursery) -> None:
    here = await console(nursery)

    for origin in (
        "http://evil.example",
        f"https://127.0.0.1:{here.port}",
        f"http://127.0.0.1:{here.port + 1}",
        "http://127.0.0.1",
        f"http://localhost:{here.port}",
        "null",
        "http://[",
        "",
    ):
        assert await here.knock(f"Origin: {origin}") == 403, origin


async def test_a_name_that_leads_here_by_dns_rebinding_is_refused(nursery: trio.Nursery) -> None:
    here = await console(nursery)

    for host in ("evil.example", "127.0.0.1.nip.io", "\xff", "a b"):
        assert await here.knock(f"Host: {host}", f"Origin: http://{host}") == 421, host
    assert (await here.ask("/", "Host: evil.example")).status == 421


async def test_a_proxy_with_tls_says_what_the_browser_asked(nursery: trio.Nursery) -> None:
    here = await console(nursery, web_names=("queues.example.org",))
    headers = ("Host: queues.example.org", "Origin: https://queues.example.org")

    assert await here.knock(*headers) == 403
    assert await here.knock(*headers, "X-Forwarded-Proto: https") == 101


# Who asks.


async def test_with_a_password_the_socket_wants_a_session(nursery: trio.Nursery) -> None:
    here = await console(nursery, **SECRET)
    name, cookie = await here.cookie("sesame")
    origin = f"Origin: {here.origin}"

    assert await here.knock(origin) == 401
    assert await here.knock(origin, f"{name}: {cookie}") == 101
    assert await here.knock(origin, f"{name}: {cookie[:-1]}x") == 401


async def test_without_an_origin_only_the_password_itself_counts(nursery: trio.Nursery) -> None:
    here = await console(nursery, **SECRET)
    name, cookie = await here.cookie("sesame")

    assert await here.knock(f"{name}: {cookie}") == 401
    assert await here.knock("Authorization: Bearer guess") == 401
    assert await here.knock("Authorization: Bearer sesame") == 101


async def test_guesses_over_the_socket_are_counted(nursery: trio.Nursery) -> None:
    here = await console(nursery, **SECRET)

    guesses = [f"Authorization: Bearer guess{number}" for number in range(WRONG_MOST)]
    assert [await here.knock(guess) for guess in guesses] == [401] * (WRONG_MOST - 1) + [429]
    assert await here.knock("Authorization: Bearer sesame") == 429
    assert here.nodes[0].state.stats.connections_rejected == {"web-password": WRONG_MOST}


async def test_a_reader_sees_and_changes_nothing(nursery: trio.Nursery) -> None:
    here = await console(nursery, **SECRET, web_reader_password=b"look")
    async with here.browser(await here.cookie("look")) as browser:
        hello = await browser.hear("hello")
        assert (hello["role"], hello["operations"]) == ("reader", [])
        assert await browser.see("overview")
        await browser.say(
            t="do", id=5, operation="queues pause", args={"queue": "q", "side": "out"}
        )
        assert "only reads" in (await browser.hear("error", 5))["says"]


async def test_a_reader_cannot_sign_itself_up(nursery: trio.Nursery) -> None:
    here = await console(nursery, **SECRET, web_reader_password=b"look")
    name, cookie = await here.cookie("look")

    forged = cookie.replace("=reader.", "=admin.")

    assert forged != cookie
    assert await here.knock(f"Origin: {here.origin}", f"{name}: {forged}") == 401


async def test_a_console_that_only_reads_does_so_for_everybody(nursery: trio.Nursery) -> None:
    here = await console(nursery, web_read_only=True)
    async with here.browser() as browser:
        hello = await browser.hear("hello")
        assert (hello["role"], hello["operations"]) == ("reader", [])
        await browser.say(
            t="do", id=5, operation="queues pause", args={"queue": "q", "side": "out"}
        )
        assert "only reads" in (await browser.hear("error", 5))["says"]


async def test_a_session_is_over_after_half_a_day() -> None:
    now = 1e9
    guard = Authenticator(lambda: Config(**SECRET, web_port=8711), lambda _ip: None, lambda: now)
    cookie = guard.begin_session("admin")[1].partition(b";")[0]
    request = Request(b"GET", "/", "127.0.0.1", {b"cookie": cookie})

    assert (await guard.user_of(request)).role == "admin"
    now += SESSION_S
    assert (await guard.user_of(request)).role == ""


# What is asked.


@pytest.mark.parametrize(
    "header",
    [
        "Sec-WebSocket-Version: 12",
        "Sec-WebSocket-Key: short",
        "Sec-WebSocket-Key: \xff\xfe",
        "Sec-WebSocket-Protocol: chat",
        "Upgrade: h2c",
    ],
)
async def test_an_upgrade_that_is_none_is_refused_at_once(
    nursery: trio.Nursery, header: str
) -> None:
    here = await console(nursery)

    # Of a header that comes twice the last one counts.
    assert await here.knock(f"Origin: {here.origin}", header) == 400


@pytest.mark.parametrize(
    "header",
    [
        "Connection: Up\xffgrade",
        f"Sec-WebSocket-Protocol: \xa0{upgrade.PROTOCOL}",
        "Sec-WebSocket-Extensions: \xff",
        "Host: localhost..",
        "X: \xff",
    ],
)
async def test_bytes_that_are_no_text_are_no_bug(
    nursery: trio.Nursery, header: str, capsys: pytest.CaptureFixture[str]
) -> None:
    here = await console(nursery)

    # Without an Origin it is no page, so that another Host will do.
    assert await here.knock(header) in (101, 400)
    assert "bug" not in capsys.readouterr().err


async def test_a_large_frame_ends_the_socket(nursery: trio.Nursery) -> None:
    here = await console(nursery)
    async with here.browser() as browser:
        await browser.hear("hello")
        with pytest.raises(ConnectionClosed) as caught:  # noqa: PT012
            await browser.socket.send_message("x" * (upgrade.MOST_FRAME + 1))
            with trio.fail_after(20):
                await browser.socket.get_message()
    assert caught.value.reason.code == 1009


async def test_so_many_browsers_and_no_more(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disque_trio.web.site.SOCKETS", 2)
    here = await console(nursery)
    assert subscriptions.SOCKETS == 32
    async with here.browser() as one, here.browser() as other:
        await one.hear("hello")
        await other.hear("hello")
        assert await here.knock(f"Origin: {here.origin}") == 503


async def test_sockets_do_not_use_up_the_connections_of_an_address(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "MOST_OF_ONE", 1)
    here = await console(nursery)
    async with here.browser() as one, here.browser() as other:
        await one.hear("hello")
        await other.hear("hello")
        assert (await here.ask("/livez")).status == 200


async def test_noise_over_the_socket_ends_no_node(nursery: trio.Nursery) -> None:
    here = await console(nursery)
    rng = random.Random(7)
    head = (
        f"GET /socket HTTP/1.1\r\nHost: 127.0.0.1:{here.port}\r\nOrigin: {here.origin}\r\n"
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        f"Sec-WebSocket-Protocol: {upgrade.PROTOCOL}\r\n\r\n"
    ).encode()
    for _ in range(40):
        async with await trio.open_tcp_stream("127.0.0.1", here.port) as stream:
            with trio.move_on_after(0.05):
                await stream.send_all(head + rng.randbytes(rng.randrange(1, 300)))
                await everything(stream)

    assert (await here.ask("/livez")).body == b"ok\n"
    async with here.browser() as browser:
        assert await browser.see("overview")


# How long it takes.


async def test_a_browser_that_reads_nothing_is_left_alone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    replayed = upgrade.Replayed(theirs, b"")

    async def never() -> None:
        await trio.sleep_forever()

    theirs.send_stream.send_all_hook = never
    with pytest.raises(trio.TooSlowError):
        await replayed.send_all(b"x")

    assert trio.current_time() == pytest.approx(upgrade.SEND_S)
    await ours.aclose()


async def test_a_handshake_that_drips_ends(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    ours, theirs = trio.testing.memory_stream_pair()

    async def answer(_request: Request) -> Response:
        raise AssertionError("it never comes so far")

    async def drip() -> None:
        with pytest.raises(trio.BrokenResourceError):  # noqa: PT012
            for letter in b"GET /socket HTTP/1.1\r\n" * 10:
                await ours.send_all(bytes([letter]))
                await trio.sleep(1)

    nursery.start_soon(drip)
    await Connection(theirs, "127.0.0.1", answer).run()

    assert trio.current_time() <= http_server.HEAD_S + http_server.LINGER_S
    await theirs.aclose()
