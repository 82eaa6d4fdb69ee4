"""Traces of live nodes as one history."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from disque_trio.sim.checkers.verdict import judge
from disque_trio.sim.traces import files as traces_files
from disque_trio.sim.traces.merge_live import history, plan_of
from disque_trio.statemachine.base import JobId, Reply, Status
from disque_trio.tracing.rows import Row
from tests.cluster.processes import Cluster, Fleet
from tests.rig import JOB

JOB_TEXT = JOB.decode()
WALL = 1_800_000_000_000_000


def message(
    time: int, kind: str, node: str, peer: str, cause: str = "gotjob", detail: str = ""
) -> Row:
    return Row(WALL + time, kind, node, JOB_TEXT, peer=peer, cause=cause, detail=detail)


def test_an_operation_whose_rows_are_in_two_files_of_a_node_stays_one() -> None:
    asked = Row(WALL, "add.invoke", "aaaa", client="c", ref=1)
    answered = Row(WALL + 1, "add.ok", "aaaa", "J1", client="c", ref=1)
    other = Row(WALL + 2, "add.invoke", "bbbb", client="c", ref=1)

    first, second, third = history([[answered], [asked], [other]]).rows

    assert first.ref == second.ref != third.ref


def test_time_begins_with_the_first_row_and_nodes_are_named_by_their_files() -> None:
    rows = history([[Row(WALL + 5, "start", "aaaa")], [Row(WALL, "start", "bbbb")]]).rows

    assert [(row.time, row.node) for row in rows] == [(0, "n2"), (5, "n1")]


def test_files_that_share_an_id_are_of_one_node() -> None:
    first = [Row(WALL, "start", "aaaa"), Row(WALL + 1, "start", "bbbb")]
    rows = history([first, [Row(WALL + 2, "start", "cccc")], [Row(WALL + 3, "start", "bbbb")]]).rows

    assert [row.node for row in rows] == ["n1", "n1", "n2", "n1"]


def test_messages_are_paired_in_order() -> None:
    first = [message(time, "send", "aaaa", "bbbb") for time in (1, 2)]
    second = [message(time, "recv", "bbbb", "aaaa") for time in (3, 4, 5)]

    rows = history([first, second]).rows

    assert [(row.kind, row.peer, row.ref) for row in rows] == [
        ("send", "n2", 1),
        ("send", "n2", 2),
        ("recv", "n1", 1),
        ("recv", "n1", 2),
        ("recv", "n1", 0),
    ]


def test_a_lost_message_is_not_paired_with_one_that_says_something_else() -> None:
    lost = message(1, "send", "aaaa", "bbbb", "enqueue", "delay=5")
    sent = message(2, "send", "aaaa", "bbbb", "enqueue", "delay=0")
    heard = message(3, "recv", "bbbb", "aaaa", "enqueue", "delay=0")

    assert [row.ref for row in history([[lost, sent], [heard]]).rows] == [1, 2, 2]


def test_holders_and_failing_nodes_get_their_names() -> None:
    copy = Row(WALL, "recv", "aaaa", peer="bbbb", cause="repljob")
    copy.detail = "jobs=x holders=bbbb,aaaa,dddd no-reply"
    failing = Row(WALL, "recv", "aaaa", peer="bbbb", cause="fail", detail="bbbb")
    ack = Row(WALL, "recv", "aaaa", peer="bbbb", cause="setack", detail="holders=2")

    rows = history([[copy, failing, ack], [Row(WALL, "start", "bbbb")]]).rows

    assert [row.detail for row in rows] == [
        "jobs=x holders=n2,n1,? no-reply",
        "n2",
        "holders=2",
        "",
    ]


def test_requests_of_two_nodes_have_different_numbers() -> None:
    files = [
        [Row(WALL, "add.invoke", node, client="127.0.0.1:5", ref=1)] for node in ("aaaa", "bbbb")
    ]

    assert len({row.ref for row in history(files).rows}) == 2


def test_nothing_is_together_too() -> None:
    assert history([[], []]).rows == []
    assert plan_of([]).nodes == 1


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    fleet = Fleet(tmp_path)
    try:
        # So small that each node rotates its file several times.
        limits = ("--trace-file-max-bytes", "1500", "--trace-file-keep", "99")
        yield fleet.cluster(3, "--trace-file", "trace.jsonl", *limits)
    finally:
        fleet.close()


def id_of(reply: Reply) -> JobId:
    assert isinstance(reply, Status)
    return reply.text


def test_the_history_of_a_real_cluster_is_judged(cluster: Cluster) -> None:
    client = cluster[0].client
    job = id_of(client.call("ADDJOB", "q", "body", 1000, "RETRY", 1, "REPLICATE", 3))
    client.call("GETJOB", "FROM", "q")
    # Nobody acknowledges it, so it comes again, wherever one asks.
    cluster[1].client.call("GETJOB", "TIMEOUT", 15_000, "FROM", "q")
    cluster[2].client.call("ACKJOB", job)
    cluster.wait_empty(20)

    paths = [path for s in cluster.servers for path in s.directory.glob("trace.jsonl*")]
    assert len(paths) > 5
    files = [traces_files.read(str(path)).rows for path in paths]
    rows = history(files).rows
    checkers = judge(plan_of(rows), is_live=True)
    for row in rows:
        checkers.see(row)
    verdict = checkers.finish()

    assert verdict.violations == ()
    assert verdict.distinct == 1
    assert verdict.deliveries == 2
    assert verdict.duplicates == {"D1": 1}
    sent = {row.ref: row for row in rows if row.kind == "send"}
    came = [row for row in rows if row.kind == "recv"]
    assert came
    assert all(sent[row.ref].node == row.peer for row in came)
