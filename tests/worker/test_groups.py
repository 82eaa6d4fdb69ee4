"""`group`: a text, or a function of the arguments of the job."""

import json
from typing import Any

import pytest

from disque_trio.worker import App, Call
from disque_trio.worker.requests import Request


def render(customer: str, page: int = 1) -> str:
    return f"{customer} {page}"


def declared(**options: Any) -> Any:
    return App().task(name="render", **options)(render)


def request_of(call: Call[Any]) -> Request[Any]:
    return call.enqueuer.request(call)


def group_of(call: Call[Any]) -> bytes | None:
    words = request_of(call).command.words
    return words[words.index(b"GROUP") + 1] if b"GROUP" in words else None


def test_a_text_is_the_group_of_all_jobs_of_a_task() -> None:
    task = declared(group="acme")

    assert group_of(task.call("ada")) == b"acme"
    assert group_of(task.using(group="other").call("ada")) == b"other"


def test_a_function_gets_the_arguments() -> None:
    task = declared(group=lambda customer, page=1: f"{customer}-{page}")

    assert group_of(task.call("ada")) == b"ada-1"
    assert group_of(task.call("ada", page=7)) == b"ada-7"
    assert group_of(task.using(group=lambda customer: customer).call("eve")) == b"eve"


@pytest.mark.parametrize("group", [None, lambda _: None, lambda _: ""])
def test_no_group_is_no_option(group: Any) -> None:
    assert group_of(declared(group=group).call("ada")) is None


def test_a_later_step_has_the_group_of_its_own_arguments() -> None:
    task = declared(group=lambda customer: f"of {customer}")

    request = request_of(task.call("ada") | task.call("eve"))

    [step] = json.loads(request.command.words[2])["headers"]["then"]
    assert step["options"]["group"] == "of eve"


def test_a_later_step_that_gets_a_result_needs_a_text() -> None:
    task = declared(group=lambda customer: customer)

    with pytest.raises(ValueError, match=r"set it with using\(group=…\)"):
        request_of(task.call("ada") | task.partial())
    found = request_of(task.call("ada") | task.using(group="acme").partial())
    assert json.loads(found.command.words[2])["headers"]["then"][0]["options"]["group"] == "acme"


@pytest.mark.parametrize("group", ["", "x" * 257, 7, "\ud800"])
def test_what_cannot_be_a_group_is_refused(group: Any) -> None:
    with pytest.raises(ValueError, match="group="):
        declared(group=group)
    with pytest.raises(ValueError, match="its function has returned group="):
        request_of(declared(group=lambda _: group or "x" * 300).call("ada"))
