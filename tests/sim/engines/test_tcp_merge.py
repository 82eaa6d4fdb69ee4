"""One history of the traces of nodes, the frames of proxies, and the rows of agents."""

from collections.abc import Sequence
from pathlib import Path

import attrs

from disque_trio.sim.engines.events import NEVER
from disque_trio.sim.engines.tcp.links import Flight
from disque_trio.sim.engines.tcp.merge import Sources, merge
from disque_trio.sim.engines.tcp.pairing import NodeTrace
from disque_trio.sim.engines.tcp.proxies import ProcessLink
from disque_trio.sim.engines.tcp.trace_reader import TraceReader
from disque_trio.sim.model.vector_clocks import precedes
from disque_trio.statemachine.wording import Wording
from disque_trio.tracing.jsonlines import line_of
from disque_trio.tracing.rows import Row
from tests.rig import JOB
from tests.sim.plans import SECOND

JOB_TEXT = JOB.decode()

EPOCH = 1_000_000


def node_row(
    time: int,
    kind: str,
    *,
    node: str = "aaaaaaaa",
    job: str = JOB_TEXT,
    client: str = "",
    peer: str = "",
    cause: str = "",
    detail: str = "",
    ref: int = 0,
) -> Row:
    return Row(EPOCH + time, kind, node, job, "", client, peer, cause, detail, ref)


def sent(time: int, job: str = JOB_TEXT) -> Row:
    return node_row(time, "send", cause="gotjob", peer="bbbbbbbb", job=job)


def came(time: int, job: str = JOB_TEXT) -> Row:
    return node_row(time, "recv", cause="gotjob", peer="aaaaaaaa", job=job)


def merged(
    first: list[Row],
    second: list[Row] | None = None,
    ours: list[Row] | None = None,
    flights: list[Flight] | None = None,
    *,
    begins: Sequence[int] = (0,),
) -> list[Row]:
    """`begins`: where the rows of each process of n2 begin."""
    second = [attrs.evolve(row, node="bbbbbbbb") for row in second or []]
    sources = Sources(
        epoch=EPOCH,
        traces=[
            NodeTrace("n1", ("aaaaaaaa",), first),
            NodeTrace("n2", ("bbbbbbbb",), second, begins),
        ],
        ours=ours or [],
        flights=flights or [],
        agents={("n1", "127.0.0.1:5"): "p1"},
        operations={("n1", "127.0.0.1:5"): [7, 8]},
    )
    return merge(sources)


LINK = ProcessLink(life=1)
OTHER = ProcessLink(life=1)
ENDED = ProcessLink(life=1, has_ended=True)
LATER = ProcessLink(life=2)


def flight(
    sent: int,
    received: int = NEVER,
    *,
    ref: int = 1,
    job: str = JOB_TEXT,
    link: ProcessLink = LINK,
    lost: int = NEVER,
    why: str = "",
) -> Flight:
    came_on = link if received < NEVER else None
    return Flight(1, 2, Wording("gotjob", job), ref, sent, received, lost, why, came_on)


def told(rows: list[Row]) -> list[tuple[str, int, int, str]]:
    messages = [row for row in rows if row.kind in {"send", "recv", "lost"}]
    return [(row.kind, row.ref, row.time, row.detail) for row in messages]


def test_rows_have_our_names_and_our_time() -> None:
    [row] = merged([node_row(5, "give", peer="bbbbbbbb")])

    assert (row.time, row.node, row.peer) == (5, "n1", "n2")


def test_holders_have_our_names_too() -> None:
    detail = f"jobs={JOB_TEXT} holders=aaaaaaaa,bbbbbbbb,cccccccc no-reply"

    rows = merged([node_row(5, "send", cause="repljob", detail=detail)])

    assert rows[0].detail == f"jobs={JOB_TEXT} holders=n1,n2,? no-reply"


# Messages.


def test_a_frame_that_was_carried_pairs_its_rows() -> None:
    rows = merged([sent(1)], [came(9)], flights=[flight(2, 8, ref=5)])

    assert [(row.kind, row.ref, row.clock) for row in rows] == [
        ("send", 5, (1,)),
        ("recv", 5, (1, 1)),
    ]


def test_a_receipt_comes_after_its_frame_though_the_node_had_read_its_clock_before() -> None:
    second = [came(1), attrs.evolve(came(1), kind="hold"), attrs.evolve(came(9), kind="drop")]

    rows = merged([sent(3)], second, flights=[flight(4, 6, ref=5)])

    assert [(row.kind, row.ref, row.time) for row in rows] == [
        ("send", 5, 3),
        ("recv", 5, 6),
        ("hold", 0, 6),
        ("drop", 0, 9),
    ]
    assert precedes(rows[0].clock, rows[1].clock)


def test_a_row_about_a_request_comes_after_it_too() -> None:
    node = [
        node_row(2, "add.invoke", ref=1, client="127.0.0.1:5", job=""),
        node_row(2, "hold", cause="add"),
    ]

    rows = merged(node, ours=[Row(4, "add.invoke", "n1", client="p1", ref=7)])

    assert [(row.kind, row.time) for row in rows] == [("add.invoke", 4), ("hold", 4)]
    assert precedes(rows[0].clock, rows[1].clock)


def test_messages_that_are_alike_are_paired_in_order() -> None:
    flights = [flight(4, 20, ref=5), flight(4, 21, ref=6), flight(5, 22, ref=7)]

    rows = merged([sent(1), sent(2), sent(3)], [came(1), came(1), came(30)], flights=flights)

    assert told(rows) == [
        ("send", 5, 1, ""),
        ("send", 6, 2, ""),
        ("send", 7, 3, ""),
        ("recv", 5, 20, ""),
        ("recv", 6, 21, ""),
        ("recv", 7, 30, ""),
    ]


def test_a_frame_may_come_before_an_earlier_one_of_another_connection() -> None:
    flights = [flight(2, 50, ref=5, link=LINK), flight(8, 9, ref=6, link=ProcessLink(life=1))]

    rows = merged([sent(1), sent(7)], [came(10), came(51)], flights=flights)

    assert told(rows) == [
        ("send", 5, 1, ""),
        ("send", 6, 7, ""),
        ("recv", 6, 10, ""),
        ("recv", 5, 51, ""),
    ]


def test_of_two_connections_that_bring_alike_frames_the_following_rows_tell() -> None:
    """The node reads the connection first that has brought its frames later."""
    others = [f"D-{number}" for number in range(4)]
    kept = [flight(1, 60, ref=1)] + [
        flight(2 + at, 61 + at, ref=2 + at, job=job) for at, job in enumerate(others[:2])
    ]
    new = [flight(10, 20, ref=5, link=OTHER)] + [
        flight(11 + at, 21 + at, ref=6 + at, job=job, link=OTHER)
        for at, job in enumerate(others[2:])
    ]
    jobs = [JOB_TEXT, *others[:2], JOB_TEXT, *others[2:]]

    rows = merged([], [came(70 + at, job) for at, job in enumerate(jobs)], flights=kept + new)

    assert [row.ref for row in rows if row.kind == "recv"] == [1, 2, 3, 5, 6, 7]


def test_a_frame_that_its_node_did_not_live_to_read_is_lost() -> None:
    start = node_row(8, "start", job="")
    flights = [flight(2, 3, ref=5), flight(8, 9, ref=6, link=LATER)]

    rows = merged([sent(1), sent(7)], [start, came(9)], flights=flights, begins=(0, 0))

    assert told(rows) == [
        ("send", 5, 1, ""),
        ("lost", 5, 3, "crash"),
        ("send", 6, 7, ""),
        ("recv", 6, 9, ""),
    ]


def test_a_process_may_have_been_reached_before_it_wrote_that_it_starts() -> None:
    start = node_row(8, "start", job="")

    rows = merged([sent(6)], [start, came(9)], flights=[flight(6, 7, link=LATER)], begins=(0, 0))

    assert told(rows) == [("send", 1, 6, ""), ("recv", 1, 9, "")]


def test_a_frame_that_its_node_did_not_read_before_the_connection_ended_is_lost() -> None:
    flights = [flight(2, 3, ref=5, link=ENDED), flight(2, 4, ref=6, job="other", link=ENDED)]

    rows = merged([sent(1), sent(1, "other")], [came(5)], flights=flights)

    assert told(rows) == [
        ("send", 5, 1, ""),
        ("send", 6, 1, ""),
        ("lost", 6, 4, "broken"),
        ("recv", 5, 5, ""),
    ]


def test_a_frame_that_its_node_refused_is_left_out() -> None:
    flights = [flight(2, 3, ref=5, job="refused"), flight(2, 3, ref=6)]

    rows = merged([sent(1, "refused"), sent(1)], [came(5)], flights=flights)

    assert told(rows) == [("send", 5, 1, ""), ("send", 6, 1, ""), ("recv", 6, 5, "")]


def test_what_is_on_its_way_when_the_run_ends_is_not_lost() -> None:
    flights = [flight(2, 3, ref=5), flight(2, ref=6, job="at the proxy")]

    rows = merged([sent(1), sent(1, "at the proxy")], flights=flights)

    assert told(rows) == [("send", 5, 1, ""), ("send", 6, 1, "")]


def test_a_frame_that_the_proxy_lost_is_lost_for_its_reason() -> None:
    rows = merged([sent(1)], flights=[flight(2, ref=5, lost=4, why="cut")])

    assert told(rows) == [("send", 5, 1, ""), ("lost", 5, 4, "cut")]


def test_a_message_that_no_proxy_has_seen_was_never_linked() -> None:
    rows = merged([sent(1)])

    assert [(row.kind, row.detail) for row in rows] == [("send", ""), ("lost", "never linked")]
    assert rows[0].ref == rows[1].ref != 0


def test_a_stale_message_is_not_taken_for_a_later_one() -> None:
    rows = merged([sent(1), sent(5 * SECOND)], flights=[flight(5 * SECOND + 1, ref=9)])

    sends = [row.ref for row in rows if row.kind == "send"]
    assert sends[0] != 9
    assert sends[1] == 9


def test_every_frame_has_its_message_however_late_the_proxy_sees_it() -> None:
    flights = [flight(9 * SECOND, ref=5), flight(9 * SECOND, ref=6)]

    rows = merged([sent(1), sent(2)], flights=flights)

    assert [row.ref for row in rows if row.kind == "send"] == [5, 6]


def test_frames_of_the_warm_up_count_from_time_0_like_the_rows() -> None:
    early = flight(-58, -57, lost=NEVER)
    early.begin(-50)

    assert (early.sent, early.received, early.lost) == (-8, -7, NEVER)


# Others.


def test_agents_tell_of_themselves_and_nodes_lend_them_their_clocks() -> None:
    node = [
        node_row(2, "add.invoke", ref=1, client="127.0.0.1:5", job=""),
        node_row(2, "hold", cause="add"),
        node_row(2, "add.ok", ref=1, client="127.0.0.1:5"),
    ]
    ours = [
        Row(1, "add.invoke", "n1", client="p1", ref=7),
        Row(3, "add.ok", "n1", JOB_TEXT, client="p1", ref=7),
    ]

    rows = merged(node, ours=ours)

    assert [(row.kind, row.client, row.clock) for row in rows] == [
        ("add.invoke", "p1", (0, 0, 1)),
        ("hold", "", (2, 0, 1)),
        ("add.ok", "p1", (3, 0, 2)),
    ]


def test_a_first_life_is_fresh_and_so_is_the_first_under_a_new_name() -> None:
    rows = merged([
        node_row(1, "start", cause="empty"),
        node_row(2, "start", cause="empty"),
        node_row(3, "start", node="bbbbbbbb", cause="empty"),
    ])  # fmt: skip

    assert [row.cause for row in rows] == ["fresh", "empty", "fresh"]


# Trace files.


def test_the_rows_of_each_process_are_told_apart(tmp_path: Path) -> None:
    tail = TraceReader(tmp_path / "trace")
    tail.begin()
    first, second, last = (line_of(Row(time, "start")) for time in (1, 2, 3))
    tail.path.write_bytes(first + second + last[:5])

    tail.begin()
    # The new process has removed the unfinished line.
    tail.path.write_bytes(first + second + last)

    assert [row.time for row in tail.read()] == [1, 2, 3]
    assert tail.begins == [0, 2]
    assert tail.read() == []
    tail.close()


def test_rows_that_came_before_a_process_began_are_still_returned(tmp_path: Path) -> None:
    tail = TraceReader(tmp_path / "trace")
    tail.begin()
    tail.path.write_bytes(line_of(Row(1, "start")))
    assert len(tail.read()) == 1
    with tail.path.open("ab") as file:
        file.write(line_of(Row(2, "hold")))

    tail.begin()

    assert [row.kind for row in tail.read()] == ["hold"]
    tail.close()
