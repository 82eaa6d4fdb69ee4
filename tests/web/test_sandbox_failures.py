"""What fails in the sandbox of a console is our bug: it ends neither the process nor the page."""

import contextlib
import json
from typing import Any

import pytest
import trio
import trio.testing

from disque_trio.sim.picture.table import Table
from disque_trio.sim.sandbox import verdicts
from disque_trio.web.messages import Request
from disque_trio.web.sandbox import SandboxRoom
from disque_trio.worker.operating.plans import MistakeError
from tests.web.rooms import Logged, opened, until


def broken(*_args: Any, **_given: Any) -> Any:
    raise KeyError("of a test")


@pytest.mark.pure
async def test_a_judge_that_fails_says_so_and_the_run_goes_on(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verdicts, "judge", broken)
    logged: Logged = []
    there = await opened(nursery, logged)

    there.do({"operation": "judge"})
    await until(there, lambda: not there.state()["doing"])

    seen = there.state()
    assert seen["failed"] == "the judge has failed, see the log: KeyError: 'of a test'"
    assert (seen["verdict"], seen["ended"]) == (None, "")
    [(event, facts)] = logged
    assert event == "the sandbox has failed: this is a bug"
    assert "test_sandbox_failures.py" in facts["traceback"]
    there.do({"operation": "pace", "pace": 1})
    await trio.sleep(1)
    assert there.state()["now"] > 0
    there.do({"operation": "anew"})
    assert there.state()["failed"] == ""


@pytest.mark.pure
async def test_rows_that_cannot_be_drawn_are_told_once_and_the_run_goes_on(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged: Logged = []
    there = await opened(nursery, logged)
    there.do({"operation": "add", "node": "n1"})
    [first] = rows(there, 1, 0)["slices"]
    there.do({"operation": "add", "node": "n1"})
    with monkeypatch.context() as patched:
        patched.setattr(Table, "extend", broken)
        assert rows(there, 1, 1) == {"is_gone": True}

    assert rows(there, 1, 1) == {"is_gone": True}
    assert rows(there, 1, 0) == {"slices": [first], "next": 1, "is_more": False}
    said = "the timeline has failed, see the log: KeyError: 'of a test'"
    assert (there.state()["failed"], len(logged)) == (said, 1)
    there.do({"operation": "judge"})
    await until(there, lambda: there.state()["verdict"] is not None)
    assert there.state()["failed"] == said
    there.do({"operation": "anew"})
    assert there.state()["failed"] == ""
    there.do({"operation": "add", "node": "n1"})
    assert len(rows(there, 2, 0)["slices"]) == 1


def rows(there: SandboxRoom, epoch: int, first: int) -> Any:
    answer = there.answer(Request(b"GET", f"/sandbox/rows/{epoch}/{first}", "127.0.0.1"))
    assert answer is not None
    return json.loads(answer.body)


@pytest.mark.pure
async def test_a_simulator_that_fails_ends_the_run_and_not_the_console(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    logged: Logged = []
    there = await opened(nursery, logged)
    there.box._run = broken  # type: ignore[method-assign]

    there.do({"operation": "pace", "pace": 1})
    await until(there, lambda: there.state()["verdict"] is not None)

    seen = there.state()
    said = "the simulator has failed, see the log: KeyError: 'of a test'"
    assert (seen["ended"], seen["pace"], seen["now"]) == (said, 0, 0)
    assert len(logged) == 1
    with pytest.raises(MistakeError, match="begin anew"):
        there.do({"operation": "pace", "pace": 1})
    there.do({"operation": "anew"})
    there.do({"operation": "pace", "pace": 1})
    await trio.sleep(1)
    assert there.state()["now"] > 0


@pytest.mark.pure
@pytest.mark.parametrize("operation", ["step", "quiet", "finish"])
async def test_a_simulator_that_fails_in_any_order_ends_the_run_and_not_the_console(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, operation: str
) -> None:
    logged: Logged = []
    there = await opened(nursery, logged)
    there.box._run = broken  # type: ignore[method-assign]

    with contextlib.suppress(MistakeError):
        there.do({"operation": operation})
    await until(there, lambda: bool(there.state()["ended"]))

    assert "the simulator has failed" in there.state()["ended"]
    there.do({"operation": "anew"})
    assert there.state()["ended"] == ""


@pytest.mark.pure
async def test_an_operation_that_fails_ends_the_run_and_not_the_socket(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    logged: Logged = []
    there = await opened(nursery, logged)
    there.box.do = broken  # type: ignore[method-assign]

    with pytest.raises(MistakeError, match="the simulator has failed, see the log"):
        there.do({"operation": "kill", "node": "n1"})

    assert "the simulator has failed" in there.state()["ended"]
    assert len(logged) == 1
