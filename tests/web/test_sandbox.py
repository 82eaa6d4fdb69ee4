"""The sandbox of a console: its time, what browsers are told, and what they may do."""

from typing import Any

import pytest
import trio
import trio.testing

from disque_trio.sim.picture.table import Table
from disque_trio.sim.sandbox import sandbox as sandboxes
from disque_trio.sim.sandbox.sandbox import Sandbox
from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.scenarios.plan import Fault
from disque_trio.web import sandbox as rooms
from disque_trio.web.messages import Request
from disque_trio.web.sandbox import LONELY_S
from disque_trio.worker.operating.plans import MistakeError
from tests.sim.runs import plan
from tests.web.rooms import SECOND, opened, until


async def test_time_stands_still_until_somebody_lets_it_go_on(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    there = await opened(nursery)
    await trio.sleep(60)
    assert there.state()["now"] == 0

    assert there.do({"operation": "pace", "pace": 2}) == ["time runs ×2"]
    await trio.sleep(10)
    assert 19 * SECOND < there.state()["now"] <= 20 * SECOND
    there.do({"operation": "pace", "pace": 0.1})
    before = there.state()["now"]
    await trio.sleep(10)
    assert 0.9 * SECOND < there.state()["now"] - before <= SECOND
    there.do({"operation": "pace", "pace": 0})
    stood = there.state()["now"]
    await trio.sleep(10)
    assert there.state()["now"] == stood


async def test_time_stands_still_when_nobody_looks(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    there = await opened(nursery)
    there.state()
    there.do({"operation": "pace", "pace": 10})

    await trio.sleep(3600)

    seen = there.state()
    assert seen["pace"] == 0
    assert seen["now"] <= (LONELY_S + 1) * 10 * SECOND


async def test_what_a_busy_process_cannot_manage_is_not_made_up_for(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    there = await opened(nursery)
    there.clock = lambda: there.box.now / 4_000_000  # each 80 ms of the cluster fill a slice
    there.do({"operation": "pace", "pace": 10})
    for _ in range(100):
        there.state()
        await trio.sleep(0.1)
    before = there.state()["now"]
    assert before < 90 * SECOND
    there.clock = lambda: 0.0

    await trio.sleep(0.2)

    assert there.state()["now"] - before <= 14 * SECOND


async def test_the_digest_is_that_of_the_same_operations_at_the_same_times(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    there = await opened(nursery, seed=7)
    there.do({"operation": "add", "node": "n1", "count": 3, "replicate": 2, "retry": 2})
    there.do({"operation": "pace", "pace": 1})
    await trio.sleep(1.234)
    there.do({"operation": "cut", "sides": [["n1"], ["n2", "n3"]]})
    await trio.sleep(2.5)
    there.do({"operation": "step"})
    there.do({"operation": "kill", "node": "n2"})
    there.do({"operation": "finish"})
    await until(there, lambda: there.state()["verdict"] is not None)

    seen = there.state()
    other = Sandbox(seed=7)
    other.repeat([{"at": each.at, "name": each.name, **each.args} for each in there.box.done])
    assert other.digest == seen["digest"]
    assert seen["is_finished"]
    assert seen["verdict"]["ok"]
    assert seen["verdict"]["is_whole"]


async def test_nothing_is_done_while_it_is_finished_or_judged(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    there = await opened(nursery)
    there.do({"operation": "judge"})
    for operation in (
        {"operation": "kill", "node": "n1"},
        {"operation": "step"},
        {"operation": "pace", "pace": 1},
    ):
        with pytest.raises(MistakeError, match="wait: the judge looks"):
            there.do(operation)
    await until(there, lambda: not there.state()["doing"])
    assert not there.state()["verdict"]["is_whole"]
    there.do({"operation": "kill", "node": "n1"})
    there.do({"operation": "finish"})
    with pytest.raises(MistakeError, match="wait: everything heals"):
        there.do({"operation": "kill", "node": "n2"})


async def test_an_end_by_too_many_events_is_told_and_judged(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandboxes, "EVENTS", 500)
    there = await opened(nursery)
    there.do({"operation": "pace", "pace": 10})
    await until(there, lambda: there.state()["verdict"] is not None)

    seen = there.state()
    assert "keeps no more" in seen["ended"]
    assert seen["pace"] == 0
    with pytest.raises(MistakeError, match="begin anew"):
        there.do({"operation": "pace", "pace": 1})
    there.do({"operation": "anew", "nodes": 5, "seed": 3})
    seen = there.state()
    assert (len(seen["nodes"]), seen["seed"], seen["ended"], seen["now"]) == (5, 3, "", 0)


async def test_a_person_takes_over_from_a_scenario(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    fault = Fault(kind="crash", at=3 * SECOND, nodes=(2,), hold=4 * SECOND)
    there = await opened(nursery, plan=plan(fault, jobs=30, seconds=12))
    there.do({"operation": "anew", "at": 4 * SECOND})
    await until(there, lambda: not there.state()["doing"])

    seen = there.state()
    assert (seen["now"], seen["nodes"][1]["state"]) == (4 * SECOND, "down")
    there.do({"operation": "kill", "node": "n3"})
    with pytest.raises(MistakeError, match="not a number from 0 to 12000000"):
        there.do({"operation": "anew", "at": 13 * SECOND})


@pytest.mark.parametrize("word", ["name", "self", "operations", "\n"])
async def test_words_that_no_operation_knows_do_no_harm(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, word: str
) -> None:
    there = await opened(nursery)

    assert there.do({"operation": "kill", "node": "n1", word: "x"}) == ["n1 is killed"]


async def test_without_a_scenario_nothing_is_dropped_to_go_on_from_one(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    there = await opened(nursery)

    with pytest.raises(MistakeError, match="there is no scenario to take over"):
        there.do({"operation": "anew", "at": 0})

    assert there.epoch == 1


async def test_rows_come_in_slices_from_where_a_browser_is(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    there = await opened(nursery)

    def rows(first: int) -> Any:
        return there._rows(first)

    one = rows(0)
    there.do({"operation": "add", "node": "n1"})
    there.do({"operation": "step"})
    two = rows(one["next"])
    there.do({"operation": "kill", "node": "n3"})
    three = rows(two["next"])
    whole = rows(0)

    assert [len(each["slices"]) for each in (one, two, three, whole)] == [1, 1, 1, 3]
    assert rows(whole["next"]) == {"slices": [], "next": 3, "is_more": False}
    times = [time for each in whole["slices"] for time in each["rows"]["time"]]
    assert len(times) == len(there.box.rows)
    assert sum(times) == there.box.rows[-1].time
    assert [len(each["bars"]) for each in whole["slices"]] == [0, 0, 1]


@pytest.mark.pure
async def test_rows_that_are_many_come_in_answers_of_bounded_size(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rooms, "PIECE", 100)
    monkeypatch.setattr(rooms, "ANSWER", 250)
    there = await opened(nursery)
    there.do({"operation": "cut", "sides": [["n1"], ["n2", "n3"]]})
    there.box.run_to(60 * SECOND)

    def all_of_it() -> list[Any]:
        answers = [there._rows(0)]
        while answers[-1]["is_more"]:
            answers.append(there._rows(answers[-1]["next"]))
        return answers

    fresh, again = all_of_it(), all_of_it()

    count = len(there.box.rows)
    assert count > 400
    for answers, most in ((fresh, 100), (again, 250)):
        sizes = [sum(len(each["rows"]["time"]) for each in one["slices"]) for one in answers]
        assert sum(sizes) == count
        assert max(sizes) == most // 100 * 100
    slices = [each for one in again for each in one["slices"]]
    assert [len(each["bars"]) > 0 for each in slices] == [False] * (len(slices) - 1) + [True]
    whole = Table(3, there.box.context.nodes).extend(there.box.rows, there.box.now)
    assert slices[-1]["bars"] == whole["bars"]
    assert [n for each in slices for n in each["moves"]] == whole["moves"]


@pytest.mark.pure
async def test_slices_that_are_many_come_in_several_answers(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rooms, "SLICES", 2)
    there = await opened(nursery)
    for number in range(5):
        there.do({"operation": "step"})
        there._rows(number)

    found = there._rows(1)

    assert (len(found["slices"]), found["next"], found["is_more"]) == (2, 3, True)
    assert not there._rows(3)["is_more"]


async def test_its_files_repeat_what_was_done(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    there = await opened(nursery, seed=7)
    there.do({"operation": "kill", "node": "n1"})

    def get(path: str) -> Any:
        return there.answer(Request(b"GET", f"/sandbox/{path}", "127.0.0.1"))

    exec(compile(get("operations.py").body, "operations.py", "exec"), {})
    assert plan_file.parse(get("plan.json").body.decode()).faults[0].kind == "crash"
    assert b'"next":1' in get("rows/1/0").body
    assert get("rows/2/0").body == b'{"is_gone":true}'
    for other in ("x", "²", "1" * 5000):
        assert get(f"rows/1/{other}") is None
    assert get("passwords") is None
