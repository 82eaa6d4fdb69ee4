"""What was raised, in words."""

import json
import pathlib
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from disque_trio.statemachine.extensions import MAX_ERROR
from disque_trio.worker.checks import number
from disque_trio.worker.deciding import dead
from disque_trio.worker.describing import describe, report_of, trace_of
from disque_trio.worker.engine.records import Dead
from disque_trio.worker.exceptions import Snooze
from tests.worker.failing import NoCauseError


def raised(do: Callable[[], object]) -> BaseException:
    """What it raises."""
    try:
        do()
    except BaseException as error:
        return error
    raise AssertionError


def test_an_error_is_told_with_its_place() -> None:
    nobody: dict[str, int] = {}
    assert describe(raised(lambda: nobody["ada"])).startswith(
        "KeyError: 'ada' (worker/test_describing.py:"
    )
    group = ExceptionGroup("", [ValueError("a"), ExceptionGroup("", [OSError(), OSError()])])
    assert describe(group) == "ValueError: a, and 2 more"
    assert len(describe(ValueError("x" * 10_000))) < 600


@pytest.mark.parametrize(
    "do",
    [
        lambda: json.loads("{"),  # the standard library
        lambda: pathlib.Path("/nowhere/at/all").read_text(),
        lambda: number(0)(None, None, "x"),  # type: ignore[arg-type]  # this library
        lambda: Snooze(-1),
        lambda: pytest.importorskip("attrs").evolve(1),  # an installed one
    ],
)
def test_the_place_is_the_innermost_line_of_code_that_is_no_librarys(
    do: Callable[[], object],
) -> None:
    assert "(worker/test_describing.py:" in describe(raised(do))


def test_without_code_of_users_the_place_is_the_innermost_line() -> None:
    library: Any = ModuleType("disque_trio.made_up")
    code = compile("def fail():\n    raise ValueError('no')\n", "/opt/lib/made.py", "exec")
    exec(code, vars(library))
    error = raised(library.fail)
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next

    assert describe(error) == "ValueError: no (lib/made.py:2 in fail)"


def test_an_error_is_one_line_that_commands_no_terminal() -> None:
    error = ValueError("a\nb \x1b[2J\x1b]0;pwned\x07 \u202e \ud800 ä")

    assert describe(error) == r"ValueError: a\nb \x1b[2J\x1b]0;pwned\a \u202e \ud800 ä"


def test_a_reason_that_is_cut_is_text() -> None:
    outcome = dead("ä" + "€" * 1000, ValueError()).outcome

    assert isinstance(outcome, Dead)
    assert len(outcome.reason) == 1024 - 2
    assert set(outcome.reason.decode()) == {"ä", "€"}


def test_of_a_huge_error_the_log_has_the_beginning() -> None:
    def fail() -> None:
        raise ValueError("x" * 50_000_000)

    text = trace_of(raised(fail))

    assert text.startswith("Traceback (most recent call last):\n")
    assert len(text) < 20_000


def test_of_a_long_chain_of_causes_the_log_has_both_ends() -> None:
    def fail() -> None:
        error: Exception = ValueError("the first")
        for count in range(3_000):
            try:
                raise OSError(count) from error
            except OSError as caught:
                error = caught
        raise error

    lines = trace_of(raised(fail)).splitlines()

    assert len(lines) == 301
    assert (lines[0], lines[-1]) == ("ValueError: the first", "OSError: 2999")
    assert re.fullmatch(r"… [0-9,]+ lines …", lines[60])


def test_of_an_error_that_hides_its_causes_the_log_has_the_place() -> None:
    def fail() -> None:
        raise NoCauseError("odd")

    lines = trace_of(raised(fail)).splitlines()

    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-2:] == [
        "NoCauseError: odd (worker/test_describing.py:110 in fail)",
        "(its causes and text cannot be shown: RuntimeError)",
    ]


def test_a_report_has_class_text_place_and_traceback_in_lines() -> None:
    try:
        raise ValueError("not\nhere")
    except ValueError as error:
        report = report_of(error).decode()

    head, place, first, *_, last = report.split("\n")
    assert head == "ValueError: not\\nhere"
    assert place.endswith("in test_a_report_has_class_text_place_and_traceback_in_lines")
    assert (first, last) == ("Traceback (most recent call last):", "here")


def test_a_report_is_what_a_node_takes_whatever_the_error_says() -> None:
    error = type("E" * 5000, (Exception,), {})("\ud800\u20ac" * 20_000)

    report = report_of(error)

    assert 1000 < len(report) <= MAX_ERROR
    assert report.decode()
