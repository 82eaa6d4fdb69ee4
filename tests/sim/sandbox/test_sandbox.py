import random
from typing import Any

import pytest

from disque_trio.sim.engines.heap.run import QUIET
from disque_trio.sim.sandbox import sandbox as sandboxes
from disque_trio.sim.sandbox.args import OperationError
from disque_trio.sim.sandbox.operations import OPERATIONS
from disque_trio.sim.sandbox.sandbox import Sandbox
from disque_trio.sim.sandbox.script import script
from disque_trio.sim.sandbox.verdicts import verdict
from disque_trio.sim.scenarios.plan import Fault
from disque_trio.statemachine.machine import Machine
from tests.sim.runs import plan
from tests.sim.sandbox.steering import SECOND, again, story


@pytest.mark.parametrize("pieces", [2, 3, 17])
def test_the_same_operations_at_the_same_times_give_the_same_digest(pieces: int) -> None:
    first, other = story(Sandbox(seed=7)), story(Sandbox(seed=7), pieces)

    assert other.digest == first.digest
    assert story(Sandbox(seed=8)).digest != first.digest


def test_an_operation_a_moment_later_is_another_run() -> None:
    first = story(Sandbox(seed=7))
    operations = again(first)
    other = Sandbox(seed=7)

    other.repeat([*operations[:-1], operations[-1] | {"at": operations[-1]["at"] + 1}])
    other.run_to(first.now)

    assert other.digest != first.digest


def test_looking_changes_nothing() -> None:
    looked, other = Sandbox(seed=7), story(Sandbox(seed=7))
    for operation in again(other):
        looked.repeat([operation])
        verdict(looked)
    looked.run_to(other.now)

    assert looked.digest == other.digest


def test_a_name_does_not_end_its_comment_in_the_script() -> None:
    box = Sandbox(seed=7)
    for ends in "\n\r\0":
        box.do("add", node="n1", queue=f"x{ends}raise KeyError")

    exec(compile(script(box), "operations.py", "exec"), {})


def test_the_script_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    box = story(Sandbox(seed=7))
    box.step()
    text = script(box)
    exec(compile(text, "operations.py", "exec"), {})
    box.play(box.finishing())
    exec(compile(script(box), "operations.py", "exec"), {})

    with pytest.raises(AssertionError):
        exec(compile(text.replace("seed=7", "seed=8"), "operations.py", "exec"), {})
    assert capsys.readouterr().out == ""


def test_a_step_goes_to_the_next_event() -> None:
    box = Sandbox(seed=7)
    box.do("add", node="n1", retry=5)
    seen, times = len(box.rows), [box.now]
    for _ in range(5):
        box.step()
        times.append(box.now)
        assert len(box.rows) > seen
        seen = len(box.rows)

    assert times == sorted(set(times))
    assert box.rows[-1].time == box.now


def test_a_step_ends_though_nothing_happens() -> None:
    box = Sandbox(nodes=1)
    box.do("kill", node="n1")
    box.run_to(SECOND)

    box.step()

    assert box.now == SECOND + sandboxes.STEP_MOST


def test_quiet_is_when_nothing_happens_to_any_job() -> None:
    box = Sandbox(seed=7)
    box.do("add", node="n1", retry=60)
    box.do("add-worker", node="n2")

    box.play(box.quieting())

    last = max(row.time for row in box.rows if row.job)
    assert box.now == last + QUIET
    assert box.counts["ack.ok"] == 1


def test_quiet_has_an_end_though_jobs_come_again_and_again() -> None:
    box = Sandbox(seed=7)
    box.do("add", node="n1", retry=1)
    box.do("add-worker", node="n2", acks=False)

    box.play(box.quieting())

    assert box.now == sandboxes.QUIET_MOST


def test_the_end_heals_everything_and_judges_the_whole() -> None:
    box = story(Sandbox(seed=7))
    box.do("cut", sides=[["n1", "n2"], ["n3"]])
    box.do("kill", node="n1")
    assert not verdict(box)["is_whole"]

    box.play(box.finishing())

    assert box.is_finished
    assert box.context.going_on() == []
    assert [row.kind for row in box.rows if row.kind in {"heal.end", "end"}] == ["heal.end", "end"]
    found = verdict(box)
    assert (found["ok"], found["is_whole"], found["findings"]) == (True, True, [])
    assert found["duplicates"]
    with pytest.raises(OperationError, match="begin anew"):
        box.do("kill", node="n1")


def test_a_node_that_breaks_its_promise_is_found_out() -> None:
    class Forgetful(Machine):
        """It loses a job that it has confirmed."""

        def tick(self, now: Any) -> None:
            self.state.jobs.clear() if now.mono > 1_005_000 else None
            super().tick(now)

    box = Sandbox(seed=7, machine_factory=Forgetful)
    box.do("add", node="n1", replicate=3, retry=60)
    box.run_to(30 * SECOND)

    found = verdict(box)

    assert not found["ok"]
    assert found["findings"]
    assert all(each["at"] <= box.now and each["says"] for each in found["findings"])


def test_a_node_that_raises_ends_it() -> None:
    class Raising(Machine):
        """It fails after a while."""

        def tick(self, now: Any) -> None:
            assert now.mono < 1_002_000, "broken on purpose"
            super().tick(now)

    box = Sandbox(seed=7, machine_factory=Raising)

    box.run_to(10 * SECOND)

    assert "broken on purpose" in box.ended
    assert box.now < 3 * SECOND
    with pytest.raises(OperationError, match="begin anew"):
        box.do("kill", node="n1")
    assert not verdict(box)["ok"]


@pytest.mark.parametrize("pieces", [1, 6007])
def test_it_keeps_so_many_events_and_says_so(monkeypatch: pytest.MonkeyPatch, pieces: int) -> None:
    monkeypatch.setattr(sandboxes, "EVENTS", 1000)
    box = Sandbox(seed=7)
    for piece in range(1, pieces + 1):
        box.run_to(3600 * SECOND * piece // pieces)

    assert 1000 <= len(box.rows) < 1200
    assert "keeps no more" in box.ended
    assert box.now == 38_400_000  # however it came there


def test_it_takes_so_many_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "MOST_OPERATIONS", 2)
    box = Sandbox()
    box.do("kill", node="n1")
    box.do("restart", node="n1")

    with pytest.raises(OperationError, match="2 operations are the most"):
        box.do("kill", node="n1")


def test_a_person_goes_on_from_the_midst_of_a_plan() -> None:
    fault = Fault(kind="crash", at=3 * SECOND, nodes=(2,), hold=4 * SECOND)
    box = Sandbox(plan(fault, jobs=30, seconds=12))
    box.run_to(4 * SECOND)
    assert not box.context.is_up("n2")
    box.do("kill", node="n3")
    box.run_to(8 * SECOND)
    assert (box.context.is_up("n2"), box.context.is_up("n3")) == (True, False)

    box.play(box.finishing())

    [healed] = [row.time for row in box.rows if row.kind == "heal.end"]
    assert healed == 12 * SECOND
    assert verdict(box)["ok"]


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_done_by_hand_no_promise_is_broken(seed: int) -> None:
    box = wild(seed)
    box.play(box.finishing())

    assert box.ended == "it is finished"
    assert verdict(box)["findings"] == []
    other = Sandbox(nodes=box.sim.plan.nodes, seed=seed)
    other.repeat(again(box))
    assert other.digest == box.digest


def wild(seed: int) -> Sandbox:
    """A sandbox in which somebody presses every button."""
    rng = random.Random(seed)
    box = Sandbox(nodes=rng.randint(2, 5), seed=seed)
    for _ in range(60):
        box.run_to(box.now + int(rng.random() ** 3 * 3 * SECOND))
        name, args = _wish(rng, box.context.nodes)
        held = box.context.client.held_jobs()
        if name == "answer" and held:
            one = rng.choice(held)
            args |= {"job": one.job, "node": one.node, "how": rng.choice(["ack", "nack", "drop"])}
        try:
            box.do(name, **args)
        except OperationError:
            continue
    return box


def _wish(rng: random.Random, nodes: list[str]) -> tuple[str, dict[str, Any]]:
    mixed = rng.sample(nodes, len(nodes))
    name = rng.choice([*OPERATIONS, "add", "take"])
    more: dict[str, dict[str, Any]] = {
        "cut": {"sides": [mixed[:1], mixed[1:]]},
        "slow": {"ms": rng.choice([0, 50, 500])},
        "clock": {"ms": rng.choice([-60_000, 3_600_000])},
        "add": {"count": 3, "retry": rng.choice([1, 5, 60]), "replicate": rng.randint(1, 2)},
        "add-worker": {"acks": rng.random() < 0.7},
        "remove-worker": {"worker": f"w{rng.randint(1, 3)}"},
    }
    return name, {"node": mixed[0], **more.get(name, {})}
