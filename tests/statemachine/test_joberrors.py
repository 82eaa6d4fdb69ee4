"""The last error of a job (NACK ERROR), here and at the other holders."""

import attrs
import pytest

from disque_trio.statemachine.base import (
    ACTIVE,
    CAPABILITIES,
    DEAD,
    ERRORS,
    EXTENDS,
    QUEUED,
    Failure,
    NodeId,
)
from disque_trio.statemachine.extensions import (
    ERROR_BYTES,
    EXTENSION_BYTES,
    MAX_ERROR,
    NO_ERROR,
    Extensions,
    LastError,
)
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.memory import of_queue
from disque_trio.statemachine.messages import JobError, Postponed, ReplJob, YourJobs
from disque_trio.statemachine.records import LoadJob
from tests.rig import CALM, JOB, ME, N2, N3, Rig, copy_of
from tests.statemachine.giving import cluster, delivered, held

TEXT = b"TimeoutError: no answer in 5 s\nload/tasks.py:22 in send"
LATER = 1 << 60


def shown(rig: Rig, job: Job) -> dict[bytes, object]:
    reply = rig.ask("SHOW", job.id)
    assert isinstance(reply, list)
    return dict(zip(reply[::2], reply[1::2], strict=True))  # type: ignore[arg-type]


def told(rig: Rig) -> list[tuple[NodeId, JobError]]:
    return [(to, said) for to, said in rig.sent() if isinstance(said, JobError)]


@pytest.mark.parametrize(
    ("options", "state"), [((), QUEUED), (("DELAY", 5), ACTIVE), (("DEAD", "why"), DEAD)]
)
def test_show_says_why_a_job_was_given_back_last(options: tuple[str, ...], state: int) -> None:
    rig = cluster()
    job = delivered(rig)

    assert rig.ask("NACK", job.id, *options, "ERROR", TEXT) == 1

    assert job.state == state
    assert shown(rig, job)[b"error"] == TEXT
    assert shown(rig, job)[b"failed-at"] == rig.now.wall
    assert told(rig) == [(each, JobError(JOB, rig.now.wall, TEXT)) for each in (N2, N3)]


@pytest.mark.parametrize(
    "options",
    [
        ("ERROR", "why", "DELAY", 5),
        ("DELAY", 5, "error", "why"),
        ("ERROR", "why", "DEAD"),
        ("DEAD", "ERROR", "why"),
        ("DEAD", "reason", "ERROR", "why"),
        ("ERROR", "why", "DEAD", "reason"),
    ],
)
def test_options_come_in_any_order(options: tuple[str | int, ...]) -> None:
    rig = cluster()
    job = delivered(rig)

    assert rig.ask("NACK", job.id, *options) == 1

    assert job.error.text == b"why"
    assert job.dead_state.reason == (b"reason" if "reason" in options else b"")


def test_a_reason_may_be_the_name_of_an_option() -> None:
    rig = cluster()
    job = delivered(rig)

    rig.ask("NACK", job.id, "DEAD", "ERROR")

    assert (job.dead_state.reason, job.error) == (b"ERROR", NO_ERROR)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("ERROR",), b"ERR syntax error: ERROR has no value behind it"),
        (("ERROR", "a", "ERROR", "b"), b"ERR syntax error: ERROR is given twice"),
        (("ERROR", "a", "DEAD", "DELAY", 5), b"ERR syntax error: DELAY and DEAD exclude each"),
        (("ERROR", "x" * (MAX_ERROR + 1)), b"ERR The text behind ERROR has at most 4096 bytes"),
        (("DELAY", 1, "ERORR", "x"), b"ERR syntax error: 'ERORR' is not an option of NACK"),
    ],
)
def test_wrong_options_change_nothing(options: tuple[str, ...], error: bytes) -> None:
    rig = cluster()
    job = delivered(rig)

    reply = rig.ask("NACK", job.id, *options)

    assert isinstance(reply, Failure)
    assert reply.text.startswith(error)
    assert (job.nacks, job.error) == (0, NO_ERROR)


def test_the_last_one_is_kept_until_another_one_is_said() -> None:
    rig = cluster()
    job = delivered(rig)
    rig.ask("NACK", job.id, "ERROR", "first")
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("NACK", job.id)
    assert job.error.text == b"first"

    rig.ask("GETJOB", "FROM", "q")
    rig.ask("NACK", job.id, "ERROR", "second")

    assert job.error == LastError(rig.now.wall + 1, b"second")
    rig.ask("NACK", job.id, "DEAD")
    rig.ask("REDRIVE", job.id)
    assert job.error.text == b"second"


@pytest.mark.parametrize("options", [(), ("DELAY", 5)])
def test_a_job_that_is_given_back_already_keeps_its_error(options: tuple[str, ...]) -> None:
    rig = cluster()
    job = delivered(rig)
    rig.ask("NACK", job.id, *options, "ERROR", "first")

    assert rig.ask("NACK", job.id, "ERROR", "second") == 0

    assert job.error.text == b"first"


def test_an_empty_text_is_none() -> None:
    rig = cluster()
    job = delivered(rig)

    assert rig.ask("NACK", job.id, "ERROR", "") == 1

    assert job.extensions is None


def test_the_next_worker_is_told() -> None:
    rig = cluster()
    job = delivered(rig)
    rig.ask("NACK", job.id, "ERROR", "why")

    reply = rig.ask("GETJOB", "WITHMETA", "FROM", "q")

    assert isinstance(reply, list)
    assert isinstance(reply[0], list)
    assert reply[0][-4:] == [b"failed-at", rig.now.wall, b"error", b"why"]


# Memory and journal.


def test_it_is_in_the_account_as_long_as_the_job() -> None:
    rig = cluster()
    empty = rig.node.memory.held
    job = delivered(rig)
    before = rig.node.memory.held

    rig.ask("NACK", job.id, "ERROR", TEXT)
    assert rig.node.memory.held == before + EXTENSION_BYTES + ERROR_BYTES + len(TEXT)

    rig.ask("DELJOB", job.id)
    assert rig.node.memory.held <= empty + of_queue(rig.queue())


@pytest.mark.parametrize("options", [(), ("DELAY", 5), ("DEAD", "why")])
def test_one_record_has_it(options: tuple[str, ...]) -> None:
    rig = cluster()
    rig.node.is_recording = True
    job = delivered(rig)
    errors_in(rig)

    rig.ask("NACK", job.id, *options, "ERROR", TEXT)

    assert errors_in(rig) == [TEXT]


def errors_in(rig: Rig) -> list[bytes]:
    """The error of each record since the last call."""
    records = [record for out in rig.outboxes for record in out.records]
    rig.outboxes.clear()
    found = [each.copy.extensions for each in records if isinstance(each, LoadJob)]
    return [b"" if each is None else each.error.text for each in found]


# The other holders.


def test_another_holder_keeps_and_records_it() -> None:
    rig = cluster()
    rig.node.is_recording = True
    job = held(rig)
    errors_in(rig)

    rig.message(N2, JobError(JOB, 5, b"why"))

    assert job.error == LastError(5, b"why")
    assert errors_in(rig) == [b"why"]


@pytest.mark.parametrize("at", [4, 5])
def test_an_older_one_changes_nothing(at: int) -> None:
    rig = cluster()
    job = held(rig)
    rig.message(N2, JobError(JOB, 5, b"why"))
    rig.node.is_recording = True

    rig.message(N3, JobError(JOB, at, b"why"))

    assert job.error == LastError(5, b"why")
    assert not errors_in(rig)


def test_a_nack_here_is_later_than_what_is_known_whatever_the_clocks_show() -> None:
    rig = cluster()
    job = delivered(rig)
    rig.message(N2, JobError(JOB, LATER, b"ahead"))

    rig.ask("NACK", job.id, "ERROR", "here")

    assert job.error == LastError(LATER + 1, b"here")


@pytest.mark.parametrize("make", [lambda copy: ReplJob((copy,)), lambda copy: YourJobs((copy,))])
def test_a_copy_brings_it(make: object) -> None:
    rig = cluster()
    job = held(rig)
    found = Extensions(error=LastError(5, b"why"))

    copy = attrs.evolve(copy_of(JOB, holders=(N2, N3, ME)), extensions=found, state=QUEUED)
    rig.message(N2, make(copy))  # type: ignore[operator]

    assert job.error == LastError(5, b"why")


def test_who_cannot_keep_it_is_not_told() -> None:
    rig = cluster()
    job = delivered(rig)
    rig.node.cluster.nodes[N2].capabilities = CAPABILITIES & ~ERRORS

    rig.ask("NACK", job.id, "ERROR", TEXT)

    assert [to for to, _ in told(rig)] == [N3]
    assert job.extensions is not None
    assert job.extensions.kept_by(CAPABILITIES & ~ERRORS) is None
    assert job.extensions.kept_by(EXTENDS | ERRORS) is job.extensions
    assert job.extensions.kept_by(ERRORS) is None
    assert Extensions(priority=1, error=job.error).kept_by(EXTENDS) == Extensions(priority=1)
    assert not job.extensions.needs


def test_a_job_with_retry_0_has_it_too() -> None:
    rig = Rig(config=CALM)
    job = rig.add("RETRY", 0, "REPLICATE", 1)
    rig.ask("GETJOB", "FROM", "q")

    assert rig.ask("NACK", job.id, "ERROR", "why") == 0

    assert job.error.text == b"why"


def test_a_wait_and_its_error_are_one_record_at_another_holder() -> None:
    rig = cluster()
    rig.node.is_recording = True
    held(rig)
    errors_in(rig)

    rig.messages(N2, Postponed(JOB, 5000, 1, is_new=True), JobError(JOB, 5, b"why"))

    assert errors_in(rig) == [b"why"]
