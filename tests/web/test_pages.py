"""The files of the console's page, and the picture of a run."""

import base64
import gzip
import hashlib
import re

import attrs
import trio

from disque_trio.client.address import Address, Cluster
from disque_trio.sim.picture.html_page import html_page
from disque_trio.statemachine.config import Config
from disque_trio.web.messages import Request, Response
from disque_trio.web.site import Site
from disque_trio.web.source import Picture, alone
from tests.node.world import MemoryLog
from tests.web.browser import console

PICTURE = html_page("a run", "p { color: red }", "<script>\nlet a = 1;\n</script>")


async def asked(site: Site, path: str, **headers: bytes) -> Response:
    named = {name.replace("_", "-").encode(): value for name, value in headers.items()}
    return await site.answer(Request(b"GET", path, "127.0.0.1", {b"host": b"localhost", **named}))


def site(page: str = "", password: bytes = b"") -> Site:
    config = Config(port=0, web_port=8710, requirepass=password)
    picture = Picture(page.encode(), b'{"of":"a run"}') if page else None
    return Site(alone(config, None, MemoryLog(), picture))


async def test_files_are_sent_once(nursery: trio.Nursery) -> None:
    here = await console(nursery)
    first = await here.ask("/", "Accept-Encoding: gzip")

    assert gzip.decompress(first.body).startswith(b"<!DOCTYPE html>")
    assert first.headers["content-encoding"] == "gzip"
    again = await here.ask("/", f"If-None-Match: {first.headers['etag']}")
    assert (again.status, again.body) == (304, b"")
    assert "content-security-policy" in again.headers


async def test_the_timeline_of_pictures_is_served_as_it_lies(nursery: trio.Nursery) -> None:
    here = await console(nursery)

    answer = await here.ask("/static/timeline/run.js")

    assert answer.status == 200
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert b"export class Run" in answer.body


async def test_the_frame_of_pictures_is_for_those_who_are_let_in() -> None:
    config = Config(port=0, web_port=8710)
    site = Site(alone(config, Cluster([Address()]), MemoryLog(), None))
    locked = attrs.evolve(config, requirepass=b"sesame")

    answer = await asked(site, "/picture")
    assert answer.status == 200
    assert answer.body.count(b"<!-- put:data -->") == 1
    assert answer.kind.startswith(b"text/plain")
    barred = Site(alone(locked, Cluster([Address()]), MemoryLog(), None))
    assert (await asked(barred, "/picture")).status == 401


async def test_there_are_no_other_files(nursery: trio.Nursery) -> None:
    here = await console(nursery)

    for path in (
        "/static/",
        "/static/../site.py",
        "/static/site.py",
        "/static/..%2fsite.py",
        "/static/timeline/",
        "/static/timeline/../main.js",
        "/timeline/run.js",
    ):
        assert (await here.ask(path)).status == 404, path


async def test_a_picture_runs_its_own_script_and_no_other() -> None:
    answer = await asked(site(PICTURE), "/replay")

    policy = dict(answer.headers)[b"Content-Security-Policy"].decode()
    [script] = re.findall(r"<script>(.*?)</script>", PICTURE, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert "style-src 'sha256-" in policy
    assert "unsafe" not in policy
    assert answer.body == PICTURE.encode()


async def test_a_picture_is_for_those_who_are_let_in() -> None:
    assert (await asked(site(PICTURE, b"sesame"), "/replay")).status == 401
    assert (await asked(site(), "/replay")).status == 404
