"""What nodes keep of the last hour and day, and what the console makes of it."""

import time
from typing import Any

import pytest
import trio

from disque_trio.client import commands
from disque_trio.driver.history import COARSE, COARSE_MOST, FINE_MOST, ORDERS, History
from disque_trio.observe.history import NodeHistory, _series
from disque_trio.statemachine.base import FAIL, Now
from disque_trio.statemachine.stats import CommandStat
from disque_trio.worker.operating.notes import CONTROL
from disque_trio.worker.operating.plans import MistakeError
from tests.observe.rig import observed
from tests.observe.test_topics import told
from tests.rig import N2, Rig

NOON = 1_790_000_000


def kept(samples: int, added: int = 0) -> History:
    """Of a node that has looked so often, ten seconds apart, and has as many jobs each time."""
    history = History(Rig().node)
    for number in range(samples + 1):
        history.state.tally.added = number * added
        history.look(Now(mono=number * 10_000, wall=(NOON + number * 10) * 1000))
    return history


def test_rates_are_of_the_time_between_two_samples() -> None:
    fields = dict(kept(2, added=25).fields())

    assert fields["history_since"] == str(NOON)
    names = fields["history_fields"].split(",")
    first, second = (
        dict(zip(names, sample.split(","), strict=True))
        for sample in fields["history_10s"].split(";")
    )
    assert (first["at"], second["at"]) == (str(NOON + 10), str(NOON + 20))
    assert (first["added"], second["added"], second["queued"]) == ("2.5", "2.5", "0")
    assert second["wait_ms"] == ""
    assert fields["history_300s"] == ""


def test_nothing_is_known_before_the_second_look() -> None:
    assert dict(kept(0).fields())["history_10s"] == ""


def test_a_day_is_kept_in_kilobytes() -> None:
    fields = dict(kept(COARSE * (COARSE_MOST + 2), added=1234).fields())

    fine, coarse = (fields[name].split(";") for name in ("history_10s", "history_300s"))
    assert (len(fine), len(coarse)) == (FINE_MOST, COARSE_MOST)
    assert len("".join(fields.values())) < 64_000
    assert coarse[-1].split(",")[1] == "123.4"


def test_the_next_sample_is_due_ten_seconds_later() -> None:
    history = kept(1)

    assert history.due == 20_000


async def test_the_first_look_shows_what_nodes_have_kept(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 2)
    await seen.client.addjob("mail", "body", replicate=1)
    for node in seen.nodes:
        history = node.chores.history
        for number in (0, 1, 2):
            wall = int(time.time() * 1000) + 10_000 * number
            history.look(Now(mono=node.now.mono + 10_000 * (number + 1), wall=wall))

    view = await told(seen, "history", span="hour")

    assert len(view["at"]) == len(view["added_s"]) == len(view["queued"]) >= 2
    assert max(each or 0 for each in view["queued"]) == 1
    assert [each["kind"] for each in view["marks"]] == ["start", "start"]
    with pytest.raises(MistakeError, match="there is no span 'year'"):
        await told(seen, "history", span="year")


def test_a_time_of_which_no_node_tells_is_a_gap() -> None:
    def node(name: str, *numbers: int) -> NodeHistory:
        samples: dict[int, dict[str, float]] = {n: {"added": 1.0, "wait_ms": n} for n in numbers}
        return NodeHistory(name, 10.0, samples)

    view: dict[str, Any] = _series([node("n1", 1, 2, 5), node("n2", 2)], 10)

    assert view["at"] == [10, 20, 30, 40, 50]
    assert view["added_s"] == [1, 2, None, None, 1]
    assert view["wait_ms"] == [1, 2, None, None, 5]
    start = {"at": 10.0, "kind": "start", "what": ""}
    assert view["marks"] == [{**start, "node": "n1"}, {**start, "node": "n2"}]


def test_a_period_in_which_one_node_took_no_sample_is_no_dip() -> None:
    even = {number: {"queued": 3.0} for number in range(4)}
    drifting = {number: {"queued": 300.0} for number in (0, 1, 3)}
    stopped = {number: {"queued": 7.0} for number in (0, 3)}

    found = _series([NodeHistory("a", 0, even), NodeHistory("b", 0, drifting)], 10)
    gap = _series([NodeHistory("a", 0, even), NodeHistory("b", 0, stopped)], 10)

    assert found["queued"] == [303.0] * 4
    assert gap["queued"] == [10.0, 3.0, 3.0, 10.0]


def at(second: int) -> Now:
    return Now(mono=second * 1000, wall=(NOON + second) * 1000)


def marks_of(history: History) -> list[str]:
    told = dict(history.fields())["history_marks"]
    return [each.partition(",")[2] for each in told.split(";") if each]


def test_what_happens_to_a_node_is_marked_once() -> None:
    rig = Rig(peers=1)
    history, peer = History(rig.node), rig.node.cluster.nodes[N2]
    peer.name = b"n2"
    history.look(at(0))
    purges = rig.node.stats.commands["purge"] = CommandStat(calls=3)

    def fail() -> None:
        peer.flags |= FAIL

    def come_back() -> None:
        peer.flags &= ~FAIL

    def pause() -> None:
        rig.ask("PAUSE", "mail", "all")

    def purge() -> None:
        purges.calls += 2

    def leave() -> None:
        rig.ask("CLUSTER", "LEAVING", "yes")

    history.look(at(1))
    for number, change in enumerate((fail, None, come_back, pause, None, purge, leave), 1):
        if change is not None:
            change()
        history.look(at(number * 10))

    assert marks_of(history) == [
        "done,PURGE",
        "failed,n2",
        "back,n2",
        "paused,1",
        "done,PURGE",
        "leaving,",
    ]


def test_commands_that_go_on_and_on_are_marked_when_they_begin() -> None:
    rig = Rig()
    history = History(rig.node)
    commands = rig.node.stats.commands
    cancelled, deleted = (commands.setdefault(each, CommandStat()) for each in ("cancel", "deljob"))
    history.look(at(0))

    for second in range(10, 700, 10):
        cancelled.calls += 1
        deleted.calls += 5
        history.look(at(second))
    assert marks_of(history) == ["done,CANCEL", "done,DELJOB"]
    history.look(at(1280))
    deleted.calls += 1
    history.look(at(1290))

    assert marks_of(history) == ["done,CANCEL", "done,DELJOB", "done,DELJOB"]


def test_orders_to_workers_are_marked_with_their_names() -> None:
    assert CONTROL.encode() == ORDERS
    rig = Rig()
    history = History(rig.node)
    history.look(at(0))
    for second in (10, 20, 30):
        if second != 20:
            rig.ask("ADDJOB", f"{CONTROL}shop-1.01a2", "quiet", "0", "RETRY", "0")
        rig.add(queue="disque-trio.workers")
        history.look(at(second))

    assert marks_of(history) == ["order,shop-1", "order,shop-1"]
    for name in ("a\r\nb;c\u202e", "x", "y", "z"):
        rig.ask("ADDJOB", f"{CONTROL}{name}.1", "quiet", "0", "RETRY", "0")
    history.look(at(40))
    assert marks_of(history)[2:] == ["order,a??b?c???, x, y and 1 more"]


def test_a_node_that_is_forgotten_is_not_back() -> None:
    rig = Rig(peers=1)
    history, peer = History(rig.node), rig.node.cluster.nodes[N2]
    peer.name = b"n2"
    history.look(at(0))
    peer.flags |= FAIL
    history.look(at(10))
    del rig.node.cluster.nodes[peer.id]
    history.look(at(20))

    assert marks_of(history) == ["failed,n2"]


def test_the_longest_standstill_of_the_last_ten_minutes_is_told() -> None:
    history = kept(1)
    for second, stood in ((20, 700), (100, 2500), (700, 600)):
        history.late(at(second), stood)

    assert history.standstill(690_000) == (2500, 590_000)
    assert history.standstill(701_000) == (600, 1000)
    assert history.standstill(9_000_000) == (0, 0)
    assert marks_of(history) == ["late,0.7s", "late,2.5s", "late,0.6s"]


def test_what_several_nodes_notice_is_one_mark() -> None:
    first = NodeHistory("n1", 10.0, {}, [(100.0, "failed", "n3"), (500.0, "late", "1.0s")])
    second = NodeHistory("n2", 10.0, {}, [(104.0, "failed", "n3"), (501.0, "late", "1.0s")])

    view: dict[str, Any] = _series([first, second], 10)

    told = [(each["node"], each["kind"], each["what"]) for each in view["marks"][2:]]
    assert told == [("n1", "failed", "n3"), ("n1", "late", "1.0s"), ("n2", "late", "1.0s")]


async def test_a_loop_that_stands_still_is_a_finding(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    [node] = seen.nodes
    node.chores.history.look(node.now)
    await seen.client.run(commands.purge("mail"))
    later = Now(mono=node.now.mono + 10_000, wall=node.now.wall + 10_000)
    node.chores.history.look(later)

    time.sleep(2.5)  # the loop runs in this thread
    with trio.fail_after(10):
        while not (
            found := [
                each
                for each in (await told(seen, "overview"))["findings"]
                if "was blocked" in each["text"]
            ]
        ):
            await trio.sleep(0.05)

    assert found[0]["level"] == "note"
    kinds = [each["kind"] for each in (await told(seen, "history", span="hour"))["marks"]]
    # On a busy machine the loop is late more than once.
    assert list(dict.fromkeys(kinds)) == ["start", "late", "done"]


def test_no_node_tells_of_anything() -> None:
    assert _series([], 10)["at"] == []
