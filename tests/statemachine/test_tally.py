"""What INFO tally says has happened in the node."""

import pytest

from disque_trio.statemachine.messages import GotJob, NeedJobs, SetAck, YourJobs
from disque_trio.statemachine.tally import Histogram
from tests.rig import JOB, ME, N2, N3, Rig, copy_of
from tests.statemachine.commands.informed import fields_of


def told(rig: Rig) -> dict[str, str]:
    """What is not zero."""
    fields = fields_of(rig, "tally")
    return {name: value for name, value in fields.items() if value.strip("0,")}


def test_nothing_has_happened_yet() -> None:
    assert told(Rig()) == {}


@pytest.mark.parametrize("is_traced", [False, True])
def test_the_life_of_a_job_is_counted_by_both_ways(is_traced: bool) -> None:
    rig = Rig()
    rig.node.trace = [] if is_traced else None
    job = rig.add()
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("ACKJOB", job.id)

    assert told(rig) == {
        "jobs_added": "1",
        "jobs_queued": "first=1",
        "jobs_delivered": "1",
        "jobs_acked": "ackjob=1",
    }


def test_a_job_that_comes_again_tells_why() -> None:
    rig = Rig()
    job = rig.add("RETRY", 10)
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("NACK", job.id)
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("WORKING", job.id)
    rig.advance(11_000)
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("NACK", job.id, "DELAY", 1)
    rig.advance(2_000)
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("NACK", job.id, "DEAD")

    found = told(rig)

    assert found["jobs_queued"] == "first=1,nack=1,retry=1,backed-off=1"
    assert found["jobs_nacked"] == "3"
    assert found["jobs_postponed"] == "1"
    assert found["jobs_delivered"] == "4"


def test_a_job_without_work_is_counted_by_how_it_ends() -> None:
    rig = Rig(peers=1)
    rig.add("TTL", 1, "REPLICATE", 1)
    rig.add("RETRY", 0, "REPLICATE", 1)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.advance(1_500)

    rig.ask("FASTACK", JOB)
    rig.ask("DELJOB", *rig.node.jobs)

    assert told(rig)["jobs_dropped"] == "expired=1,fastack=1,client-deljob=1"
    assert told(rig)["jobs_acked"] == "fastack=1"
    assert told(rig)["copies_taken"] == "1"


def test_copies_are_counted_once_the_client_is_answered() -> None:
    rig = Rig(peers=2)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 3, client=rig.connect())
    [job] = rig.node.jobs.values()
    rig.message(N2, GotJob(job.id))
    assert "jobs_added" not in told(rig)

    rig.advance(20)
    rig.message(N3, GotJob(job.id))

    found = told(rig)
    assert found["jobs_added"] == "1"
    assert found["copies_confirmed"] == "2"
    assert found["copying_ms_sum"] == "20"


def test_jobs_that_move_are_counted_at_both_ends() -> None:
    rig = Rig(peers=1)
    rig.add("REPLICATE", 1)
    rig.message(N2, NeedJobs(b"q", 1))
    rig.message(N2, YourJobs((copy_of(JOB, holders=(N2,), queue=b"q"),)))

    assert told(rig)["jobs_given"] == "1"
    assert told(rig)["jobs_queued"] == "first=1,import=1"


def test_an_acknowledgement_that_comes_from_elsewhere_is_told_apart() -> None:
    rig = Rig(peers=1)
    rig.hold(copy_of(holders=(N2, ME)))

    rig.message(N2, SetAck(JOB, 2))
    rig.message(N2, SetAck(JOB, 2))

    assert told(rig)["jobs_acked"] == "setack=1"


def test_errors_are_counted_by_their_first_word() -> None:
    rig = Rig()
    rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 2)
    rig.ask("ADDJOB", "q", "body", 0, "MAXLEN", "many")
    rig.ask("ADDJOB", "q", "body", 0, "SOON")
    rig.ask("PAUSE")

    assert told(rig)["errors"] == "NOREPL=1,ERR=3"


def test_an_addjob_that_gets_no_copies_in_time_is_an_error() -> None:
    rig = Rig(peers=1)
    rig.request("ADDJOB", "q", "body", 100, "REPLICATE", 2, client=rig.connect())
    rig.advance(200)

    assert told(rig)["errors"] == "NOREPL=1"
    assert "jobs_added" not in told(rig)


def test_one_wait_in_sixteen_is_noted() -> None:
    rig = Rig()
    for _ in range(50):
        rig.add()
    rig.advance(3)
    for count in (10, 1, 39):
        rig.ask("GETJOB", "COUNT", count, "FROM", "q")

    assert rig.node.tally.wait.buckets[2] == 3
    assert rig.node.tally.wait.sum == 9


def test_totals_outlive_a_reset_of_the_statistics() -> None:
    rig = Rig()
    rig.add()

    rig.ask("CONFIG", "RESETSTAT")

    assert told(rig)["jobs_added"] == "1"


def test_a_bucket_ends_below_a_power_of_two() -> None:
    histogram = Histogram()
    for took in (-5, 0, 1, 2, 3, 4, 1 << 22, 1 << 40):
        histogram.note(took)

    assert histogram.buckets[:4] == [2, 1, 2, 1]
    assert histogram.buckets[-1] == 2
    assert histogram.sum == 10 + (1 << 22) + (1 << 40)
