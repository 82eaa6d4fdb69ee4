"""Who is answered what (docs/metrics.md)."""

import attrs
import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from disque_trio.statemachine.chores import Shutdown
from disque_trio.statemachine.config import Config
from disque_trio.web.auth import WRONG_MOST
from disque_trio.web.messages import Request
from disque_trio.web.site import Site
from disque_trio.web.source import of_node
from tests.web.asking import Answer, Web, web

SECRET = Config(requirepass=b"open sesame")
BEARER = "Authorization: Bearer open sesame"


async def cookie_of(node: Web) -> str:
    """The header of a browser that has logged in."""
    answer = await node.log_in("open%20sesame")
    assert answer.status == 303
    return "Cookie: a=b; " + answer.headers["set-cookie"].partition(";")[0]


# What there is.


async def test_a_node_is_alive_and_ready(nursery: trio.Nursery) -> None:
    node = await web(nursery)

    assert (await node.ask("/livez")).status == 200
    ready = await node.ask("/readyz")
    assert (ready.status, ready.body.count(b"ok ")) == (200, 5)


async def test_a_node_that_is_to_end_is_alive_but_not_ready(nursery: trio.Nursery) -> None:
    node = await web(nursery)
    node.live.node.life.shutdown = Shutdown()

    assert (await node.ask("/livez")).status == 200
    ready = await node.ask("/readyz")
    assert ready.status == 503
    assert b"BAD running: stopping" in ready.body


async def test_metrics_tell_what_clients_did(nursery: trio.Nursery) -> None:
    node = await web(nursery)
    stream = await node.live.client()
    await stream.send_all(b"ADDJOB q body 0\r\nADDJOB q body 0 REPLICATE 9\r\n")
    await stream.receive_some()

    answer = await node.ask("/metrics")
    families = text_string_to_metric_families(answer.body.decode())
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert found["disque_jobs_added_total",] == 1
    assert found["disque_jobs_queued_total", "first"] == 1
    assert found["disque_jobs", "queued"] == 1
    assert found["disque_queues",] == 1
    assert found["disque_error_replies_total", "NOREPL"] == 1
    assert found["disque_clients", "other"] == 1
    assert found["disque_command_calls_total", "addjob"] == 2
    assert found["disque_ready",] == 1


async def test_there_is_a_page_for_people(nursery: trio.Nursery) -> None:
    node = await web(nursery)

    answer = await node.ask("/")

    assert answer.headers["content-type"].startswith("text/html")
    assert b"<title>disque_trio</title>" in answer.body


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/etc/passwd", 404), ("POST", "/metrics", 405), ("PUT", "/login", 405)],
)
async def test_nothing_else_is_there(
    nursery: trio.Nursery, method: str, path: str, status: int
) -> None:
    node = await web(nursery)

    assert (await node.ask(path, method=method)).status == status


@pytest.mark.parametrize("path", ["/", "/livez", "/nothing", "/login", "/metrics"])
async def test_every_response_forbids_what_it_does_not_need(
    nursery: trio.Nursery, path: str
) -> None:
    node = await web(nursery)

    headers = (await node.ask(path)).headers

    assert headers["content-security-policy"].startswith("default-src 'none';")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == ("no-cache" if path == "/" else "no-store")


# By which name.


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:1", 200),
        ("[::1]:80", 200),
        ("Queues.Example.org.", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.nip.io", 421),
        ("a b", 421),
        ("\xff", 421),
        ("", 421),
    ],
)
async def test_a_name_that_is_not_ours_leads_nowhere(
    nursery: trio.Nursery, host: str, status: int
) -> None:
    node = await web(nursery, Config(web_names=("queues.example.org",)))

    data = f"GET /livez HTTP/1.1\r\nConnection: close\r\nHost: {host}\r\n\r\n"
    assert (await node.send(data.encode("latin-1"))).startswith(b"HTTP/1.1 %d" % status)


async def test_options_of_the_whole_server_lists_the_methods(nursery: trio.Nursery) -> None:
    answer = await (await web(nursery)).ask("*", method="OPTIONS")

    assert (answer.status, answer.headers["allow"]) == (204, "GET, HEAD, POST, OPTIONS")


@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS"])
async def test_probes_are_only_read(nursery: trio.Nursery, method: str) -> None:
    answer = await (await web(nursery)).ask("/livez", method=method)

    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


# Who.


async def test_without_a_password_other_machines_are_not_served(nursery: trio.Nursery) -> None:
    node = await web(nursery)
    site = Site(of_node(node.live.node, node.live.event_loop.connect_inside))

    async def status(path: str) -> int:
        asked = Request(b"GET", path, "192.0.2.7", {b"host": b"192.0.2.1"})
        return (await site.answer(asked)).status

    assert await status("/metrics") == 403
    assert await status("/login") == 403
    assert await status("/readyz") == 200


async def test_with_a_password_programs_send_it(nursery: trio.Nursery) -> None:
    node = await web(nursery, SECRET)

    missing = await node.ask("/metrics")
    assert (missing.status, missing.headers["www-authenticate"]) == (401, 'Bearer realm="disque"')
    assert (await node.ask("/metrics", "Authorization: Bearer guess")).status == 401
    assert (await node.ask("/metrics", "Authorization: Basic open sesame")).status == 401
    assert (await node.ask("/metrics", BEARER)).status == 200
    assert (await node.ask("/livez")).status == 200


async def test_metrics_may_be_open(nursery: trio.Nursery) -> None:
    node = await web(nursery, attrs.evolve(SECRET, web_metrics_open=True))

    assert (await node.ask("/metrics")).status == 200
    assert (await node.ask("/")).status == 401


async def test_browsers_log_in_and_out(nursery: trio.Nursery) -> None:
    node = await web(nursery, SECRET)

    led = await node.ask("/", "Accept: text/html")
    assert (led.status, led.headers["location"]) == (303, "/login")
    assert b'type="password"' in (await node.ask("/login")).body

    answer = await node.log_in("open%20sesame")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    for word in ("HttpOnly", "SameSite=Strict", "Path=/", f"disque-{node.port}="):
        assert word in answer.headers["set-cookie"]
    assert (await node.ask("/", await cookie_of(node))).status == 200

    origin = f"Origin: http://127.0.0.1:{node.port}"
    out = await node.ask("/logout", origin, method="POST")
    assert "Max-Age=0" in out.headers["set-cookie"]


async def test_a_session_is_good_at_every_node_with_the_password(nursery: trio.Nursery) -> None:
    one, other = await web(nursery, SECRET), await web(nursery, SECRET)

    cookie = (await cookie_of(one)).replace(str(one.port), str(other.port))

    assert (await other.ask("/", cookie)).status == 200
    state = other.live.node.state
    state.config = attrs.evolve(state.config, requirepass=b"another one")
    assert (await other.ask("/", cookie)).status == 401


async def test_a_forged_session_is_none(nursery: trio.Nursery) -> None:
    node = await web(nursery, SECRET)
    cookie = await cookie_of(node)
    name, _, value = cookie.rpartition("=")
    role, expires, nonce, signature = value.split(".")

    for forged in (
        f"{role}.{int(expires) + 1}.{nonce}.{signature}",
        f"{role}.{expires}.{nonce[::-1]}.{signature}",
        f"{role}.{expires}.{nonce}.{'0' * 64}",
        f"{role}.{expires}.{nonce}.",
        f"reader.{expires}.{nonce}.{signature}",
        f"{expires}.{nonce}.{signature}",
        "",
        "\xff",
        "9" * 5000,
    ):
        assert (await node.ask("/", f"{name}={forged}")).status == 401, forged


@pytest.mark.parametrize(
    "header",
    [
        "Origin: http://evil.example",
        "Origin: null",
        "Origin: http://[",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "Accept: */*",
    ],
)
async def test_a_form_of_another_site_is_refused(nursery: trio.Nursery, header: str) -> None:
    node = await web(nursery, SECRET)

    assert (await node.log_in("open%20sesame", header)).status == 403
    assert (await node.ask("/logout", header, method="POST")).status == 403


async def test_who_guesses_has_to_wait_whatever_he_says_then(nursery: trio.Nursery) -> None:
    node = await web(nursery, SECRET)
    guesses: list[Answer] = [await node.log_in(f"guess{number}") for number in range(WRONG_MOST)]

    assert {guess.status for guess in guesses} == {401}
    assert (await node.log_in("open%20sesame")).status == 429
    assert (await node.ask("/metrics", BEARER)).status == 429
    assert node.live.node.state.stats.connections_rejected == {"web-password": WRONG_MOST}
