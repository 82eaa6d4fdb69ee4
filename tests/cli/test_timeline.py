"""What has happened to a job, as lines."""

from typing import Any

import attrs

from disque_trio.cli.operating import timeline
from disque_trio.observe.timeline import History
from disque_trio.tracing.rows import Row

ID = "D-aaaaaaaa-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
NOON = 1_800_000_000_000_000


def row(time: int, kind: str, node: str, **rest: Any) -> Row:
    return Row(NOON + time, kind, node, ID, "mail", **rest)


HISTORY = History(
    is_traced=True,
    why="traced since it failed or was requeued",
    nodes=[{"name": "n1", "node": "a:1", "omitted": 0}, {"name": "", "node": "b:1", "omitted": 7}],
    clocks=["n2: clock corrected by −12 ± 1 ms"],
    rows=[
        row(0, "hold", "n1", cause="add"),
        row(100, "send", "n1", peer="n10", cause="repljob", detail="jobs=1"),
        row(500, "recv", "n10", peer="n1", cause="repljob", detail="jobs=1"),
        row(1_500_000, "serve", "n1", client="10.0.0.7:5", cause="served"),
        row(2_000_000, "dead", "n1", cause="nack", detail="no \x1b[2J"),
        row(3_000_000, "news", "n1"),
    ],
)


def test_each_event_is_a_line_behind_what_is_known_of_the_whole() -> None:
    first, *others = timeline.lines(ID, HISTORY)

    assert first == f"{ID}, {HISTORY.why}; the first event was at 2027-01-15T08:00:00.000000+00:00"
    assert others == [
        "n2: clock corrected by −12 ± 1 ms",
        "b:1: 7 events omitted",
        "    +0.000000  n1   has a record of the job (add)",
        "    +0.000100  n1   sends REPLJOB to n10: jobs=1",
        "    +0.000500  n10  receives REPLJOB from n1: jobs=1",
        "    +1.500000  n1   serves the job to 10.0.0.7:5 (served)",
        "    +2.000000  n1   has the job as dead from now on (nack): no \\x1b[2J",
        "    +3.000000  n1   news",
    ]


def test_a_snooze_is_told_as_one_and_a_backoff_as_a_retry() -> None:
    rows = [
        row(0, "postpone", "n1", cause="release", detail="wait=60000 snoozes=1"),
        row(1_000_000, "postpone", "n2", cause="postponed", detail="wait=60000"),
        row(60_000_000, "queue", "n1", cause="backed-off"),
        row(61_000_000, "postpone", "n1", cause="nack", detail="wait=2000"),
        row(63_000_000, "queue", "n1", cause="backed-off"),
    ]

    _, *told = timeline.lines(ID, attrs.evolve(HISTORY, rows=rows, nodes=[], clocks=[]))

    assert told == [
        "    +0.000000  n1  snoozes the job, as its worker asks: wait=60000 snoozes=1",
        "    +1.000000  n2  lets the job wait before it is queued again (postponed): wait=60000",
        "   +60.000000  n1  queues the job: its snooze is over",
        "   +61.000000  n1  lets the job wait before it is queued again (nack): wait=2000",
        "   +63.000000  n1  queues the job (backed-off)",
    ]


def test_words_that_nobody_knows_are_told_as_they_are() -> None:
    """A node of a later release may tell of anything, and so may one that means harm."""
    news = row(0, "{new}", "n1\x1b[2J", peer="{0}", cause="{why}", detail="{")
    way = attrs.evolve(HISTORY, clocks=["n2\r: clock corrected"], rows=[news])
    others = [{"name": "", "node": "b\n:1", "omitted": 7}]

    found = list(timeline.lines(ID, attrs.evolve(way, nodes=others)))

    assert found[1:] == [
        "n2\\r: clock corrected",
        "b\\n:1: 7 events omitted",
        "    +0.000000  n1\\x1b[2J  {new} {0} ({why}): {",
    ]


def test_json_has_all_that_is_known() -> None:
    told = timeline.as_json(ID, HISTORY)

    assert told["events"][1] == {
        "time": NOON + 100,
        "node": "n1",
        "kind": "send",
        "peer": "n10",
        "client": "",
        "cause": "repljob",
        "detail": "jobs=1",
    }
    assert (told["id"], told["traced"], told["clocks"]) == (ID, True, HISTORY.clocks)
    assert len(told["events"]) == 6
