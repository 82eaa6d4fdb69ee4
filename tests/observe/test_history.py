"""What nodes keep of the last hour and day, and what the console makes of it."""

import time
from typing import Any

import pytest
import trio

from disque_trio.driver.history import COARSE, COARSE_MOST, FINE_MOST, History
from disque_trio.observe.history import NodeHistory, _series
from disque_trio.statemachine.base import Now
from disque_trio.worker.operating.plans import MistakeError
from tests.observe.rig import observed
from tests.observe.test_topics import told
from tests.rig import Rig

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
    assert len(view["starts"]) == 2
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
    assert view["starts"] == [{"at": 10.0, "node": "n1"}, {"at": 10.0, "node": "n2"}]


def test_no_node_tells_of_anything() -> None:
    assert _series([], 10)["at"] == []
