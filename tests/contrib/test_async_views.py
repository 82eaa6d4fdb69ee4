"""Asynchronous views of Flask and Django: each request has an event loop of its own, in a thread,
and many run at the same time."""

import contextlib
import threading
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from disque_trio.testing.server.kit import Server
from disque_trio.worker import App

pytest.importorskip("flask")
pytest.importorskip("django")
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.test import override_settings
from django.urls import path
from flask import Flask
from werkzeug.serving import make_server

from tests.contrib import djangosettings  # noqa: F401

AT_ONCE = 24

tasks = App()
urlpatterns: list[Any] = []


@tasks.task(name="views.leave", queue="views", lease=60)
def leave(name: str) -> None: ...


async def added(name: str) -> str:
    """The body of each view. It lets the other requests go on in between."""
    async with tasks:
        await anyio.sleep(0.01)
        return (await leave.enqueue(name)).id


def flask_app() -> Any:
    web = Flask("shop")
    web.get("/<name>")(added)
    return web


def django_app() -> Any:
    async def view(_: HttpRequest, name: str) -> HttpResponse:
        return HttpResponse(await added(name))

    urlpatterns[:] = [path("<name>", view)]
    return get_wsgi_application()


@contextlib.contextmanager
def served(web: Any) -> Iterator[str]:
    """Flask's development server runs it, with a thread for each request."""
    server = make_server("127.0.0.1", 0, web, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def asked(url: str, count: int) -> list[str]:
    """The answers to requests that were sent at the same time."""
    answers: list[str] = []
    together = threading.Barrier(count)

    def ask(number: int) -> None:
        together.wait(60)
        with urllib.request.urlopen(f"{url}/{number}", timeout=60) as answer:
            answers.append(answer.read().decode())

    threads = [threading.Thread(target=ask, args=[n]) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.parametrize("make", [flask_app, django_app])
@override_settings(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["127.0.0.1"])
def test_requests_of_asynchronous_views_at_the_same_time_each_add_their_job(
    make: Callable[[], Any], disque_server: Server
) -> None:
    with served(make()) as url:
        answers = [*asked(url, AT_ONCE), *asked(url, AT_ONCE)]

    assert all(each.startswith("D-") for each in answers)
    assert len({*answers}) == 2 * AT_ONCE
