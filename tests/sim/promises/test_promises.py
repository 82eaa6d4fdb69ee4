"""No option, directive or setting without a property that fails if it is ignored, or a reason."""

import ast
from collections.abc import Iterator

import attrs
import pytest

from disque_trio.sim.checkers.promises import (
    DIRECTIVES,
    OPTIONS,
    WORKER,
    Elsewhere,
    Judged,
    Row,
)
from disque_trio.sim.checkers.properties import PROPERTIES
from disque_trio.statemachine import directives
from disque_trio.worker.engine.records import Queue, Settings
from tests.sim.promises.elsewhere import ROOT, is_noticed
from tests.sim.promises.ignoring import options, without
from tests.sim.promises.proofs import PROOFS, failed


def test_each_option_of_a_command_about_jobs_has_a_row() -> None:
    named = {command: sorted(rows) for command, rows in OPTIONS.items()}

    assert named == {command: sorted(found) for command, found in options().items()}


def test_each_directive_has_a_row() -> None:
    assert sorted(DIRECTIVES) == sorted(directives.BY_NAME)


def test_each_setting_of_a_worker_has_a_row() -> None:
    fields = {each.name for kind in (Settings, Queue) for each in attrs.fields(kind)}

    assert set(WORKER) == fields


def test_rows_name_properties_that_there_are() -> None:
    rows = [
        *DIRECTIVES.values(),
        *WORKER.values(),
        *(r for o in OPTIONS.values() for r in o.values()),
    ]
    named = {name for row in rows if isinstance(row, Judged) for name in row.properties}

    assert named <= set(PROPERTIES)


def _all() -> Iterator[tuple[str, Row]]:
    for command, rows in OPTIONS.items():
        for option, row in rows.items():
            yield f"{command} {option}", row
    yield from DIRECTIVES.items()
    for name, row in WORKER.items():
        yield f"consumer {name.removeprefix('is_')}", row


def test_what_is_judged_has_a_proof() -> None:
    judged = {name for name, row in _all() if isinstance(row, Judged)}

    assert judged <= set(PROOFS), "give each a plan in tests/sim/promises/plans.py"


@pytest.mark.parametrize(
    "test", sorted({row.test for _, row in _all() if isinstance(row, Elsewhere)})
)
def test_the_tests_that_rows_name_are_there(test: str) -> None:
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))

    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert name in {each.name for each in tree.body if isinstance(each, functions)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["maxclients", "slowlog-max-len", "weight"])
def test_they_fail_if_it_is_ignored(name: str) -> None:
    assert is_noticed(name)


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    "name",
    [
        "addjob MAXBACKOFF",
        "nack DEAD",
        "redrive COUNT",
        "pause BCAST",
        "getjob WITHCOUNTERS",
        "queue PER",
    ],
)
def test_what_is_ignored_is_noticed(name: str) -> None:
    assert failed(name)


def test_an_option_is_left_out_with_its_value() -> None:
    words = [b"ADDJOB", b"q", b"RETRY", b"0", b"retry", b"2", b"ASYNC"]

    assert without(words, "addjob", "RETRY", takes_value=True) == [*words[:4], b"ASYNC"]
    assert without(words, "addjob", "ASYNC", takes_value=False) == words[:-1]
    assert without(words, "nack", "ASYNC", takes_value=False) == words
