"""Traces of some jobs only: of a chosen job no row is missing."""

from pathlib import Path

import pytest

from disque_trio.cli.sim.single import recorded
from disque_trio.statemachine.base import JobId
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.jobtraces import is_chosen
from disque_trio.statemachine.messages import GotJob, NeedJobs, Waiting, YourJobs
from disque_trio.tracing.jsonlines import rows_of
from disque_trio.tracing.live import TracedMachine
from disque_trio.tracing.live_file import TraceFile
from disque_trio.tracing.rows import Row
from disque_trio.tracing.sampling import of_chosen, sample_of
from tests.cluster.processes import Fleet
from tests.rig import N2, Rig, copy_of
from tests.tracing.test_live import Complaints

ONE_IN = 4


class Sampled(Rig):
    """A rig whose machine tells of one job in four, or of all."""

    def __init__(self, peers: int = 0, sample: int = ONE_IN) -> None:
        config = Config(trace_file_sample=sample, cluster_node_timeout=1_000_000_000)
        super().__init__(peers, config=config, kind=TracedMachine)
        assert isinstance(self.machine, TracedMachine)
        self.rows: list[Row] = []
        self.machine.trace(self.rows.extend, "fresh")
        self.take()

    def live(self) -> list[JobId]:
        """Jobs are added at once and with copies, delivered and acknowledged."""
        made = []
        for _ in range(24):
            made.append(self.add("RETRY", 60, "REPLICATE", 1).id)
            self.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)
            [waiting] = [id for id in self.node.jobs if id not in made]
            made.append(waiting)
            self.message(N2, GotJob(waiting))
        self.request("GETJOB", "COUNT", 48, "FROM", "q")
        self.request("ACKJOB", *made)
        return made


def with_operations(rows: list[Row]) -> list[tuple[str, str, str, str]]:
    """The rows, without what two runs of different samples count differently."""
    return [(row.kind, row.job, row.cause, row.detail) for row in rows]


def test_of_a_chosen_job_no_row_is_missing_and_of_others_there_is_none() -> None:
    sampled, whole = Sampled(peers=1), Sampled(peers=1, sample=1)
    made = sampled.live()
    assert whole.live() == made
    chosen = {id.decode() for id in made if is_chosen(id, ONE_IN)}
    assert 0 < len(chosen) < len(made)

    expected = list(of_chosen(whole.rows, ONE_IN))
    refs = {row.ref for row in expected if row.kind == "add.ok"}
    expected = [row for row in expected if row.kind != "add.invoke" or row.ref in refs]

    assert with_operations(sampled.rows) == with_operations(expected)
    assert {row.job for row in sampled.rows if row.job} == chosen
    asked = [row.ref for row in sampled.rows if row.kind == "add.invoke"]
    assert asked == [row.ref for row in sampled.rows if row.kind == "add.ok"]


def test_an_add_of_another_job_whose_client_goes_is_not_told() -> None:
    rig = Sampled(peers=1)
    for _ in range(12):
        client = rig.connect()
        rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2, client=client)
        [job] = rig.node.jobs
        rig.disconnect(client)
        told = [row.kind for row in rig.rows if row.kind.startswith("add.")]
        assert told == (["add.invoke", "add.unknown"] if is_chosen(job, ONE_IN) else [])
        rig.rows.clear()
        rig.node.jobs.clear()


def test_an_add_that_is_refused_is_told() -> None:
    rig = Sampled()

    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)

    assert [row.kind for row in rig.rows] == ["start", "add.invoke", "add.refused"]


def test_a_request_of_what_is_no_job_is_left_out() -> None:
    rig = Sampled()

    rig.request("ACKJOB", "nonsense")

    assert [row.kind for row in rig.rows] == ["start"]


def test_a_message_about_several_jobs_is_cut_down() -> None:
    rig = Sampled(peers=1)
    ids = [b"D-bbbbbbbb-%bAAAAAAAAAAAAAAAAAAAAAAA-05a1" % letter for letter in (b"A", b"B", b"9")]

    rig.message(N2, YourJobs(tuple([copy_of(id) for id in ids]), more=False))

    [row] = [row for row in rig.rows if row.kind == "recv"]
    assert row.job == ""
    assert row.detail.startswith(f"jobs={ids[0].decode()},{ids[1].decode()} ")


def test_what_nodes_say_of_waiting_clients_is_left_out() -> None:
    rig, whole = Sampled(peers=1), Sampled(peers=1, sample=1)
    for each in (rig, whole):
        each.message(N2, Waiting(b"q", 1))
        each.message(N2, NeedJobs(b"q", 1))

    assert [row.kind for row in rig.rows] == ["start"]
    assert [row.cause for row in whole.rows if row.kind == "recv"] == ["waiting", "needjobs"]


@pytest.mark.parametrize("detail", ["", "100", "one-in=0", "one-in=300000", "one-in=1 "])
def test_a_heading_that_says_no_number_is_refused(detail: str) -> None:
    with pytest.raises(ValueError, match="one-in=N"):
        sample_of("sample", detail)


def test_a_replay_of_samples_judges_the_jobs_that_all_traces_have(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("trace.jsonl.1", "other.jsonl")]
    for path, sample in zip(paths, (1, ONE_IN), strict=True):
        rig = Sampled(sample=sample)
        for _ in range(20):
            job = rig.add("RETRY", 60).id
            rig.request("GETJOB", "FROM", "q")
            rig.request("ACKJOB", job)
        TraceFile(path, Complaints(), sample=sample).write(rig.rows)

    whole, sampled, both = (recorded(each, None, "") for each in (paths[:1], paths[1:], paths))

    assert [each.done.result.engine for each in (whole, sampled, both)] == [
        "trace",
        "trace of one job in 4",
        "trace of one job in 4",
    ]
    assert whole.done.result.added == 20
    assert 0 < sampled.done.result.added < 20
    assert {row.job for row in both.rows} == {row.job for row in sampled.rows}
    assert sampled.done.result.is_ok


def test_a_server_says_at_its_start_that_it_writes_everything(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    try:
        whole = fleet.server("--trace-file", "trace.jsonl")
        sampled = fleet.server("--trace-file", "trace.jsonl", "--trace-file-sample", "100")
        for _ in range(3):
            sampled.client.call("ADDJOB", "q", "body", 0)
        assert "every job is traced" in whole.log()
        assert "every job is traced" not in sampled.log()
        with open(sampled.directory / "trace.jsonl", "rb") as file:
            head, start, *_ = rows_of(file)
    finally:
        fleet.close()

    assert (head.kind, head.detail, start.kind) == ("sample", "one-in=100", "start")
