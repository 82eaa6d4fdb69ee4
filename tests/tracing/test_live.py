"""The trace of a live node: what goes in and out of its machine, and the file that keeps it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from disque_trio.statemachine import acks, links
from disque_trio.statemachine.base import JobId
from disque_trio.statemachine.messages import GotAck, GotJob, Ping
from disque_trio.tracing.details import numbers
from disque_trio.tracing.jsonlines import RowError, line_of, rows_of
from disque_trio.tracing.live import TracedMachine
from disque_trio.tracing.live_file import TraceFile, TraceFileError
from disque_trio.tracing.rows import Row
from tests.cluster.processes import Fleet, Server
from tests.rig import JOB, N2, WALL, Rig, copy_of

CLIENT = "127.0.0.1:50000"
JOB_TEXT = JOB.decode()


class TracedRig(Rig):
    """A rig whose machine tells."""

    def __init__(self, peers: int = 0) -> None:
        super().__init__(peers, kind=TracedMachine)
        assert isinstance(self.machine, TracedMachine)
        self.rows: list[Row] = []
        self.machine.trace(self.rows.extend, "fresh")
        self.take()

    def told(self) -> list[Row]:
        """The rows since they were last asked for."""
        rows, self.rows[:] = list(self.rows), []
        return rows


def facts(rows: list[Row]) -> list[tuple[str, str, str]]:
    return [(row.kind, row.cause, row.job) for row in rows]


def test_the_first_row_tells_that_the_node_has_started() -> None:
    rig = TracedRig()

    assert rig.told() == [
        Row(WALL * 1000, "start", "aaaaaaaa", cause="fresh", mono=10_000, wall=WALL)
    ]


def test_an_add_is_told_with_its_options_and_its_outcome() -> None:
    rig = TracedRig()
    rig.told()

    job = rig.add("RETRY", 60, body="hello").id.decode()

    rows = rig.told()
    assert facts(rows) == [
        ("add.invoke", "", ""),
        ("hold", "add", job),
        ("queue", "first", job),
        ("add.ok", "", job),
    ]
    assert [row.ref for row in rows] == [1, 0, 0, 1]
    assert {row.queue for row in rows} == {"q"}
    assert [row.client for row in rows] == [CLIENT, "", "", CLIENT]
    assert rows[0].detail == "timeout=0 retry=60 body=hello"


def test_a_held_job_is_told_with_its_record() -> None:
    rig = TracedRig()
    rig.told()

    rig.add("RETRY", 60, "PRIORITY", 7, body="hello")
    [hold] = [row for row in rig.told() if row.kind == "hold"]
    options = numbers(hold.detail)

    assert (options["retry"], options["priority"]) == (60_000, 7)


def test_a_postponed_job_is_told_with_its_wait() -> None:
    rig = TracedRig()
    job = rig.add("RETRY", 60, "BACKOFF", 5, body="hello").id
    rig.request("GETJOB", "FROM", "q")
    rig.told()

    rig.request("NACK", job)

    [postponed] = [row for row in rig.told() if row.kind == "postpone"]
    assert postponed.detail.startswith("wait=")


def test_an_add_that_waits_is_told_when_it_is_answered() -> None:
    rig = TracedRig(peers=1)
    rig.told()
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)
    [job] = rig.node.jobs
    assert [row.kind for row in rig.told()] == ["add.invoke", "hold", "send"]

    rig.message(N2, GotJob(job))

    rows = rig.told()
    assert facts(rows) == [
        ("recv", "gotjob", job.decode()),
        ("queue", "first", job.decode()),
        ("add.ok", "", job.decode()),
    ]
    assert rows[0].peer == "bbbbbbbb"


def test_an_add_whose_client_goes_is_told_as_unknown() -> None:
    rig = TracedRig(peers=1)
    client = rig.connect()
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2, client=client)
    rig.told()

    rig.disconnect(client)

    rows = rig.told()
    assert [row.kind for row in rows][:1] == ["add.unknown"]
    assert rows[0].ref == 1


def test_a_refused_add_is_told_with_its_code() -> None:
    rig = TracedRig()
    rig.told()

    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)

    [_, refused] = rig.told()
    assert (refused.kind, refused.cause, refused.ref) == ("add.refused", "NOREPL", 1)


def test_a_delivery_is_told_with_the_client_that_waited_for_it() -> None:
    rig = TracedRig()
    worker = rig.connect()
    rig.request("GETJOB", "FROM", "q", client=worker)
    rig.told()

    rig.add(body="x")

    rows = {row.kind: row for row in rig.told()}
    assert rows["serve"].client == CLIENT
    assert "get.deliver" not in rows


def test_a_long_body_is_told_as_a_digest() -> None:
    rig = TracedRig()
    rig.add(body="x" * 65)

    [body] = [row.detail.rpartition("body=")[2] for row in rig.told() if row.kind == "add.invoke"]

    assert body.startswith("sha256:")
    assert len(body) == 71


def test_an_ack_is_told_for_each_job() -> None:
    rig = TracedRig()
    jobs = [rig.add().id for _ in range(2)]
    rig.told()

    rig.request("ACKJOB", *jobs)

    rows = rig.told()
    for kind in ("ack.invoke", "ack.ok"):
        assert [row.job for row in rows if row.kind == kind] == [job.decode() for job in jobs]


def test_a_request_of_the_wrong_shape_is_not_told() -> None:
    rig = TracedRig()
    rig.told()

    rig.request("ACKJOB", "nonsense")
    rig.request("ADDJOB", "q")
    rig.request("NONSENSE", "q")
    rig.request("PING")

    assert [(row.kind, row.cause) for row in rig.told()] == [
        ("ack.invoke", ""),
        ("ack.refused", "BADID"),
    ]


def test_a_client_that_wants_no_replies_gets_none_in_the_trace() -> None:
    rig = TracedRig()
    rig.request("CLIENT", "REPLY", "OFF")
    rig.told()

    rig.request("ADDJOB", "q", "body", 0)
    rig.request("CLIENT", "REPLY", "ON")

    assert [row.kind for row in rig.told()] == ["add.invoke", "hold", "queue"]


def test_what_a_monitor_is_shown_is_no_reply_to_what_it_asks() -> None:
    rig = TracedRig()
    rig.request("MONITOR")
    rig.told()

    rig.request("ADDJOB", "q", "body", 0)

    assert [row.kind for row in rig.told()] == ["hold", "queue"]


def test_messages_are_told_but_for_the_heartbeat() -> None:
    rig = TracedRig(peers=2)
    job: JobId = rig.hold(copy_of()).id
    rig.told()

    rig.message(N2, Ping())
    rig.request("ACKJOB", job)
    rig.message(N2, GotAck(job, known=True))

    sent = [row for row in rig.told() if row.kind in {"send", "recv"}]
    assert [(row.kind, row.cause, row.peer) for row in sent] == [
        ("send", "setack", "bbbbbbbb"),
        ("recv", "gotack", "bbbbbbbb"),
        ("send", "deljob", "bbbbbbbb"),
    ]


def test_a_message_on_a_link_that_ends_at_once_is_told_with_its_receiver() -> None:
    rig = TracedRig(peers=1)
    rig.told()
    job = rig.hold(copy_of(retry=1)).id
    peer = rig.node.cluster.nodes[N2]

    acks.ack(rig.node, job)
    links.hang_up(rig.node, peer)
    rig.take()

    assert [(r.cause, r.peer) for r in rig.told() if r.kind == "send"] == [("setack", "bbbbbbbb")]


def test_the_holders_of_a_copy_are_told_by_their_short_names() -> None:
    rig = TracedRig(peers=1)
    rig.told()

    rig.hold(copy_of())

    [row] = [row for row in rig.told() if row.kind == "recv"]
    assert row.detail == f"jobs={JOB_TEXT} holders=bbbbbbbb,aaaaaaaa no-reply"


def test_rows_come_before_what_they_tell_of_leaves() -> None:
    rig = TracedRig()
    rig.told()

    rig.machine.request(rig.client, [b"ADDJOB", b"q", b"body", b"0"], rig.now)

    assert not rig.rows
    out = rig.machine.take()
    assert out.replies
    assert rig.rows


# The file.


class Complaints(list[str]):
    """What an operator was told."""

    def __call__(self, event: str, **facts: object) -> None:
        self.append(f"{event} {facts.get('error', '')}".strip())


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


def rows_in(path: Path) -> list[Row]:
    with open(path, "rb") as file:
        return list(rows_of(file))


def test_rows_come_back_as_they_were_written(tmp_path: Path, complaints: Complaints) -> None:
    path = tmp_path / "trace"
    rows = [
        Row(1, "hold", "n1", JOB_TEXT, "q\u00fc", cause="add", mono=2, wall=3, clock=(1, 0)),
        Row(-2, "end"),
    ]
    file = TraceFile(str(path), complaints)

    file.write(rows[:1])
    file.write(rows[1:])

    assert rows_in(path) == rows
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_line_says_only_what_there_is_to_say() -> None:
    assert line_of(Row(5, "end")) == b'{"time":5,"kind":"end"}\n'


def test_an_unfinished_last_line_is_passed_over() -> None:
    assert list(rows_of([line_of(Row(1, "end")), b'{"time":2'])) == [Row(1, "end")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"nonsense\n", "line 2: no JSON"),
        (b"[1]\n", "line 2: a row is an object"),
        (b'{"time":1}\n', "line 2: a row is an object"),
        (b'{"time":"1","kind":"end"}\n', "line 2: 'time' cannot be '1'"),
        (b'{"time":true,"kind":"end"}\n', "line 2: 'time' cannot be True"),
    ],
)
def test_a_line_that_is_no_row_is_named(line: bytes, reason: str) -> None:
    with pytest.raises(RowError, match=reason):
        list(rows_of([line_of(Row(1, "end")), line]))


@pytest.mark.parametrize("torn", [b'{"time":2', b"x" * 200_000])
def test_a_new_process_goes_on_behind_the_last_whole_line(
    tmp_path: Path, complaints: Complaints, torn: bytes
) -> None:
    path = tmp_path / "trace"
    path.write_bytes(line_of(Row(1, "end")) + torn)

    TraceFile(str(path), complaints).write([Row(3, "start")])

    assert rows_in(path) == [Row(1, "end"), Row(3, "start")]


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path, complaints: Complaints) -> None:
    with pytest.raises(TraceFileError, match="cannot write the trace file"):
        TraceFile(str(tmp_path / "none" / "trace"), complaints)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_ends_the_trace_and_is_complained_of_once(complaints: Complaints) -> None:
    file = TraceFile("/dev/full", complaints)

    file.write([Row(1, "end")])
    file.write([Row(1, "end")])

    assert complaints == ["trace ended: its file cannot be written No space left on device"]


# A process.


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    fleet = Fleet(tmp_path)
    try:
        yield fleet.server("--trace-file", "trace.jsonl")
    finally:
        fleet.close()


def test_a_killed_server_has_told_all_that_its_clients_have_seen(server: Server) -> None:
    job = server.client.call("ADDJOB", "q", "body", 0)
    server.client.call("GETJOB", "FROM", "q")
    server.client.call("ACKJOB", getattr(job, "text", b""))
    server.kill()
    server.start().wait()

    rows = rows_in(server.directory / "trace.jsonl")

    kinds = [row.kind for row in rows if row.kind != "hold"]
    assert kinds[:2] == ["start", "add.invoke"]
    assert kinds.index("add.ok") < kinds.index("serve") < kinds.index("ack.ok")
    assert [row.cause for row in rows if row.kind == "start"] == ["fresh", "empty"]
    assert len({row.node for row in rows}) == 1


def test_each_add_of_a_pipeline_is_told_with_its_own_outcome() -> None:
    rig = TracedRig(peers=1)
    for body in ("one", "two", "three"):
        assert rig.offer("ADDJOB", "q", body, 0, "REPLICATE", 2)
    # No row for a request that is refused in its turn, nor for a reply that is turned off.
    rig.node.memory.hard = -1
    assert rig.offer("ADDJOB", "q", "four", 0)
    first, second, third = [each.job for each in rig.client.pending_adds][:3]
    assert first is not None
    assert second is not None
    assert third is not None
    rig.told()

    for job in (second, third, first):
        rig.message(N2, GotJob(job.id))

    told = [row for row in rig.told() if row.kind == "add.ok"]
    assert [(row.ref, row.job) for row in told] == [
        (1, first.id.decode()),
        (2, second.id.decode()),
        (3, third.id.decode()),
    ]


def test_what_a_silent_client_adds_in_a_pipeline_is_told_without_an_outcome() -> None:
    rig = TracedRig(peers=1)
    rig.request("CLIENT", "REPLY", "SKIP")
    assert rig.offer("ADDJOB", "q", "one", 0, "REPLICATE", 2)
    assert rig.offer("ADDJOB", "q", "two", 0, "REPLICATE", 2)
    first, second = [each.job for each in rig.client.pending_adds]
    assert first is not None
    assert second is not None

    rig.message(N2, GotJob(first.id))
    rig.message(N2, GotJob(second.id))

    told = [(row.kind, row.job) for row in rig.told() if row.kind.startswith("add.")]
    assert told == [("add.invoke", ""), ("add.invoke", ""), ("add.ok", second.id.decode())]


def test_a_pipeline_that_breaks_off_is_told_as_lost() -> None:
    rig = TracedRig(peers=1)
    rig.offer("ADDJOB", "q", "one", 0, "REPLICATE", 2)
    rig.offer("ADDJOB", "q", "two", 0, "REPLICATE", 2)
    rig.told()

    rig.disconnect(rig.client)

    lost = [row.ref for row in rig.told() if row.kind.startswith("add.")]
    assert lost == [1, 2]
