from typing import Any

import pytest

from disque_trio.sim.sandbox.args import OperationError
from disque_trio.sim.sandbox.sandbox import Sandbox
from disque_trio.sim.sandbox.state import state
from disque_trio.sim.scenarios import plan_file
from tests.sim.runs import of, play
from tests.sim.sandbox.steering import SECOND


def nodes(box: Sandbox, field: str) -> list[Any]:
    return [each[field] for each in state(box)["nodes"]]


@pytest.mark.parametrize(
    ("name", "args", "says"),
    [
        ("explode", {}, "there is no operation 'explode'"),
        ("kill", {}, "there is no node missing: n1, n2, n3"),
        ("kill", {"node": "n9"}, "there is no node 'n9'"),
        ("kill", {"node": ["n1"]}, "there is no node"),
        ("cut", {"sides": [["n1"]]}, "two sides or more"),
        ("cut", {"sides": [["n1"], ["n1", "n2"]]}, "two sides or more"),
        ("cut", {"sides": "n1"}, "no list of lists"),
        ("cut", {"source": "n1", "target": "n1"}, "no link to itself"),
        ("heal", {}, "there is nothing to heal"),
        ("heal", {"fault": 1}, "has already ended"),
        ("resume", {"node": "n1"}, "n1 is not paused"),
        ("slow", {"node": "n1", "ms": 0}, "n1 is not slow"),
        ("slow", {"node": "n1", "ms": 1.5}, "'ms' is 1.5, not a number from 0 to 10000"),
        ("clock", {"node": "n1", "ms": True}, "'ms' is True"),
        ("add", {"node": "n1", "count": 1000}, "'count' is 1000, not a number from 1 to 100"),
        ("add", {"node": "n1", "replicate": 4}, "'replicate' is 4, not a number from 1 to 3"),
        ("add", {"node": "n1", "queue": ""}, "not a text of 1 to 100 letters"),
        ("add", {"node": "n1", "body": "\ud800"}, "not a text"),
        ("add", {"node": "n1", "is_async": 1}, "neither true nor false"),
        ("answer", {"node": "n1", "job": "D-1"}, "you do not hold the job at n1"),
        ("remove-worker", {"worker": "w1"}, "there is no worker 'w1'"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_done(
    name: str, args: dict[str, Any], says: str
) -> None:
    box, other = Sandbox(seed=7), Sandbox(seed=7)

    with pytest.raises(OperationError, match=says):
        box.do(name, **args)

    box.run_to(SECOND)
    other.run_to(SECOND)
    assert box.digest == other.digest
    assert box.done == []


def test_a_cut_is_seen_by_those_it_parts_and_healed_by_its_number() -> None:
    box = Sandbox(seed=7)

    assert box.do("cut", sides=[["n1"], ["n3", "n2"]]) == "cut: n1 | n2 n3"
    box.do("cut", source="n2", target="n3")
    box.run_to(8 * SECOND)

    seen = state(box)
    assert ("n1", "n2", "cut") in seen["links"]
    assert seen["nodes"][0]["sees"]["n2"] != "up"
    assert [each["words"] for each in seen["faults"]] == [
        "cut: n1 | n2 n3",
        "n2 → n3 is cut, one way",
    ]
    box.do("heal", fault=1)
    assert state(box)["links"] == [("n2", "n3", "cut")]
    box.do("heal")
    assert state(box)["links"] == []
    box.run_to(60 * SECOND)
    assert set(nodes(box, "sees")[0].values()) == {"up"}


def test_a_node_is_killed_and_restarted() -> None:
    box = Sandbox(seed=7)
    box.do("kill", node="n2")
    assert nodes(box, "state") == ["up", "down", "up"]
    with pytest.raises(OperationError, match="n2 is down: restart it first"):
        box.do("pause", node="n2")

    assert box.do("restart", node="n2") == "n2 is started again"
    assert box.do("restart", node="n2") == "n2 is killed and started again"

    assert nodes(box, "state") == ["up", "up", "up"]
    assert nodes(box, "life") == [1, 3, 1]
    assert state(box)["faults"] == []


def test_a_node_is_paused_and_goes_on_and_a_killed_one_is_not_paused() -> None:
    box = Sandbox(seed=7)
    box.do("pause", node="n1")
    assert nodes(box, "state")[0] == "paused"
    box.do("resume", node="n1")
    assert nodes(box, "state")[0] == "up"
    box.do("pause", node="n1")
    box.do("kill", node="n1")

    assert [each["words"] for each in state(box)["faults"]] == ["n1 is killed"]


def test_clocks_and_slowness_are_shown() -> None:
    box = Sandbox(seed=7)
    box.do("clock", node="n3", ms=-1500)
    box.do("slow", node="n2", ms=40)
    box.do("slow", node="n2", ms=30)

    assert nodes(box, "clock_ms") == [0, 0, -1500]
    assert nodes(box, "slow_ms") == [0, 30, 0]
    assert len(state(box)["faults"]) == 1


def test_a_node_that_leaves_can_be_told_to_stay_though_it_was_restarted() -> None:
    box = Sandbox(seed=7)
    box.do("leave", node="n1")
    box.run_to(SECOND)
    assert nodes(box, "state")[0] == "leaving"
    box.do("restart", node="n1")
    box.do("heal")
    box.run_to(2 * SECOND)

    assert nodes(box, "state")[0] == "up"


def test_a_job_is_taken_by_hand_and_comes_again_until_it_is_acknowledged() -> None:
    box = Sandbox(seed=7)
    box.do("add", node="n1", replicate=2, retry=2)
    box.run_to(SECOND)
    box.do("take", node="n1")
    box.run_to(2 * SECOND)
    [held] = state(box)["in_hand"]
    [job] = state(box)["jobs"]
    assert (held["job"], held["again"], job["delivered"]) == (job["id"], 0, 1)
    assert 0 < job["again_ms"] <= 2250
    assert set(job["copies"].values()) == {"held"}

    box.run_to(5 * SECOND)
    box.do("take", node="n2")
    box.run_to(6 * SECOND)
    first, second = state(box)["in_hand"]
    assert (first["node"], second["node"], second["again"]) == ("n1", "n2", 1)
    box.do("answer", node="n2", job=held["job"])
    box.do("answer", node="n1", job=held["job"], how="drop")
    box.run_to(20 * SECOND)

    assert (state(box)["in_hand"], state(box)["jobs"]) == ([], [])
    assert state(box)["counts"] | {"unknown": 0} == {
        "added": 1, "refused": 0, "unknown": 0, "delivered": 1, "again": 1, "acked": 1,
    }  # fmt: skip


def test_replies_are_shown_and_their_absence_too() -> None:
    box = Sandbox(seed=7)
    box.do("add", node="n1", count=2)
    box.do("add", node="n1", retry=0, replicate=2)
    box.do("take", node="n2", queue="other", wait=0)
    box.do("take", node="n3", queue="other")
    box.run_to(SECOND)
    box.do("kill", node="n3")
    box.run_to(2 * SECOND)

    said = [each["reply"] for each in state(box)["asked"]]
    assert all(each.startswith("D-") for each in said[:2])
    assert said[2].startswith("ERR With RETRY set to 0")
    assert said[3:] == ["no job", "no answer: the connection was lost"]


def test_a_worker_is_removed_with_its_job_in_hand() -> None:
    box = Sandbox(seed=7)
    box.do("add-worker", node="n1", work=60_000)
    box.do("add", node="n1", retry=3)
    box.run_to(SECOND)
    assert state(box)["workers"] == [
        {
            "name": "w1", "node": "n1", "queue": "mail",
            "work_ms": 60_000, "acks": True, "has_job": True,
        }
    ]  # fmt: skip
    box.do("remove-worker", worker="w1")
    box.do("add-worker", node="n2", work=100)
    box.run_to(10 * SECOND)

    assert [each["name"] for each in state(box)["workers"]] == ["w2"]
    assert state(box)["counts"]["again"] == 1
    assert state(box)["jobs"] == []


def test_the_operations_are_a_plan_that_the_simulator_plays() -> None:
    box = Sandbox(seed=7)
    box.run_to(SECOND)
    box.do("add", node="n1", count=3, retry=1, replicate=1)
    box.do("add-worker", node="n2")
    box.do("cut", sides=[["n1"], ["n2", "n3"]])
    box.run_to(2 * SECOND)
    box.do("kill", node="n3")
    box.run_to(4 * SECOND)
    box.do("heal")
    box.run_to(5 * SECOND)

    rows = play(plan_file.parse(plan_file.dump(box.plan())))

    for kind in ("cut", "heal", "crash", "start"):
        mine = [(row.time, row.node, row.peer) for row in of(box.rows, kind)]
        assert [(row.time, row.node, row.peer) for row in of(rows, kind)] == mine
    assert len(of(rows, "add.ok")) == 3
    assert len(of(rows, "ack.ok")) == 3
