"""One line of the log for each job that cannot be run: which, why, and what to do."""

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from disque_trio.cli.worker.logs import Lines
from disque_trio.worker import App
from disque_trio.worker.repeats import PERIOD_S, Repeats
from tests.worker.runs import ID, body, outcomes, run_of

JOB = ID.decode()


def lines(
    caplog: pytest.LogCaptureFixture, whats: Sequence[bytes], queue: bytes = b"default"
) -> list[str]:
    """What a worker process writes of jobs with these bodies."""
    app = App()

    @app.task(name="typed")
    async def typed(number: int) -> None: ...

    with caplog.at_level(logging.INFO):
        outcomes(app, [run_of(what, queue=queue) for what in whats])
    form = Lines()
    return [form.format(record) for record in caplog.records]


@pytest.mark.parametrize(
    ("what", "about", "text"),
    [
        (body("typed", "x"), f"typed {JOB}: ", "invalid arguments: $.args[0]: Expected `int`"),
        (body("typed"), f"typed {JOB}: ", "invalid arguments: missing a required argument"),
        (b"rubbish", f"{JOB}: ", "unreadable: the body is neither"),
        (b'{"task":7}', f"{JOB}: ", "unreadable: "),
    ],
)
def test_a_body_that_does_not_fit(
    caplog: pytest.LogCaptureFixture, what: bytes, about: str, text: str
) -> None:
    [line] = lines(caplog, [what])

    assert f" ERROR {about}dead without a run: {text}" in line
    assert "disque-trio jobs redrive" in line
    assert "\n" not in line


def test_an_unknown_task_is_a_warning_and_others_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, other = lines(caplog, [body("nosuch"), body("nosuch"), body("other"), body("nosuch")])

    assert f" WARNING nosuch {JOB}: unknown task: nosuch; retrying in 5 s" in first
    assert f" WARNING other {JOB}: unknown task: other" in other


def test_what_was_left_out_is_told_with_the_next_line() -> None:
    repeats = Repeats()

    assert repeats.due("a", 0.0) == ""
    assert repeats.due("a", 1.0) is None
    assert repeats.due("b", 1.0) == ""
    assert repeats.due("a", PERIOD_S - 1) is None
    assert repeats.due("a", PERIOD_S) == " (2 more like this since the last line)"
    assert repeats.due("a", 2 * PERIOD_S) == ""


def test_few_keys_are_remembered() -> None:
    repeats: Any = Repeats()
    for number in range(5000):
        assert repeats.due(str(number), 0.0) == ""

    assert len(repeats._lines) == 1000
