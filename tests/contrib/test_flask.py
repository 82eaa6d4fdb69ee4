"""Flask: requests add jobs, and handlers run in the context of the application."""

import anyio
import pytest

from disque_trio.testing.inline.kit import Inline
from disque_trio.testing.server.kit import Server
from disque_trio.worker import App, Task

flask = pytest.importorskip("flask")

from disque_trio.contrib.flask import Disque, NoApplicationError  # noqa: E402


def shop(seen: list[str]) -> tuple[App[None], "Task[[], None]"]:
    tasks = App()

    @tasks.task(name="remember", queue="mail")
    def remember() -> None:
        seen.append(flask.current_app.config["NAME"])

    return tasks, remember


def test_a_request_adds_a_job_whose_handler_has_the_application(disque_inline: Inline) -> None:
    seen: list[str] = []
    tasks, remember = shop(seen)
    web = flask.Flask("shop")
    web.config["NAME"] = "the shop"
    extension = Disque(tasks)
    extension.init_app(web)

    def post() -> str:
        return remember.blocking.enqueue().id

    web.post("/")(post)
    answer = web.test_client().post("/")

    assert answer.text.startswith("D-")
    assert web.extensions["disque"] is extension
    disque_inline.blocking.run_all(tasks)
    assert seen == ["the shop"]


def test_so_have_handlers_in_threads_of_a_worker(disque_server: Server) -> None:
    seen: list[str] = []
    tasks, remember = shop(seen)
    web = flask.Flask("shop")
    web.config["NAME"] = "the shop"
    Disque(tasks, web)
    remember.blocking.enqueue()
    tasks.blocking.client.close()

    async def story() -> None:
        await disque_server.run_all(tasks)

    anyio.run(story)
    assert seen == ["the shop"]


def test_the_configuration_names_the_nodes() -> None:
    tasks, _ = shop([])
    web = flask.Flask("shop")
    web.config["DISQUE_URL"] = "disque://10.0.0.1:7799"

    Disque(tasks, web)

    assert [str(each) for each in tasks.cluster.seeds] == ["10.0.0.1:7799"]


def test_a_worker_without_an_application_says_what_to_do(disque_inline: Inline) -> None:
    tasks, remember = shop([])
    Disque(tasks)

    with pytest.raises(NoApplicationError, match="call init_app in the module that the worker"):
        disque_inline.blocking.perform(remember)
