"""docs/frameworks.md: its programs run, and its tables name what there is."""

import json
import re
from types import SimpleNamespace
from typing import Any, Final

import pytest

from disque_trio.testing.inline.kit import Inline
from tests.contrib.test_starlette import request
from tests.trees import HOME

PAGE: Final = (HOME / "docs" / "frameworks.md").read_text("utf-8")
FILES: Final = dict(
    re.findall(r"^```python\n# (\w+)\.py\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
)


def run(name: str) -> Any:
    """A file of the page, as a module."""
    names: dict[str, Any] = {"__name__": name}
    exec(compile(FILES[name], f"{name}.py", "exec"), names)
    return SimpleNamespace(**names)


async def test_fastapi_adds_a_job_that_is_run(
    disque_inline: Inline, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("fastapi")
    page = run("web")
    async with page.web.router.lifespan_context(page.web):
        status, _ = await request(page.web, "/users/ada")
        assert await request(page.web, "/ready", "GET") == (200, b'{"queue":true}')

    await disque_inline.run_all(page.tasks)

    assert status == 202
    assert capsys.readouterr().out == "welcome, ada\n"


async def test_another_web_process_tells_the_status_of_a_job_and_cancels_it(
    disque_inline: Inline,
) -> None:
    pytest.importorskip("fastapi")
    one, other = run("web"), run("web")
    async with (
        one.web.router.lifespan_context(one.web),
        other.web.router.lifespan_context(other.web),
    ):
        _, body = await request(one.web, "/users/ada")
        path = f"/jobs/{json.loads(body)['job']}"

        assert await request(other.web, path, "GET") == (200, b'{"state":"waiting","reason":""}')
        assert await request(other.web, path, "DELETE") == (204, b"")
        assert json.loads((await request(one.web, path, "GET"))[1])["state"] in ("done", "unknown")
        assert (await request(other.web, "/jobs/x", "GET"))[1] == b'{"state":"unknown","reason":""}'

    assert await disque_inline.run_all(one.tasks) == []


def test_flask_adds_a_job_that_is_run(
    disque_inline: Inline, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("flask")
    page = run("shop")

    answer = page.web.test_client().delete("/users/ada")
    disque_inline.blocking.run_all(page.tasks)

    assert answer.status_code == 202
    assert capsys.readouterr().out == "the shop: goodbye, ada\n"


def test_django_takes_the_settings_and_the_table_has_every_option() -> None:
    pytest.importorskip("django")
    from disque_trio.contrib.django.backend import OPTIONS, Backend  # noqa: PLC0415

    backend = Backend("default", run("settings").TASKS["default"])

    assert backend.app.queues == ["default", "mail"]
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| `OPTIONS` |")]
    assert set(re.findall(r"`(\w+)`", row)) - {"OPTIONS"} == OPTIONS | {"outbox", "url"}


def test_opentelemetry_is_one_line(disque_inline: Inline) -> None:
    pytest.importorskip("opentelemetry")
    page = run("telemetry")

    page.tasks.task(name="a", queue="q")(lambda: None).blocking.enqueue()

    assert len(disque_inline.jobs(page.tasks.tasks["a"])) == 1


def test_sentry_is_one_line(disque_inline: Inline) -> None:
    pytest.importorskip("sentry_sdk")
    page = run("errors")

    page.tasks.task(name="a", queue="q")(lambda: None).blocking.enqueue()

    assert disque_inline.blocking.run_all(page.tasks)[0].end == "done"


@pytest.mark.parametrize("extra", ["fastapi", "flask", "django", "otel", "sentry"])
def test_the_extras_of_the_page_are_there(extra: str) -> None:
    assert re.search(rf"^{extra} = \[", (HOME / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
