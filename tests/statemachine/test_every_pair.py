"""Every message in every state that its job may be in here: what becomes of the job, what is said.

N2 speaks; this node, N2 and N3 hold the job, and N2 wins if both have it queued.
"""

from collections.abc import Callable

import attrs
import pytest

from disque_trio.statemachine.base import BURIES, MEETS, STATE_NAMES, Failure, JobId, NodeId, Status
from disque_trio.statemachine.dispatch import ON_MESSAGE
from disque_trio.statemachine.extensions import DeadState
from disque_trio.statemachine.messages import (
    AckHolders,
    DelJob,
    Enqueue,
    Fail,
    GossipMessage,
    GotAck,
    GotJob,
    HaveJobs,
    Holders,
    JobError,
    JobState,
    KeyAnswer,
    KeyCancel,
    KeyClaim,
    LimitGrant,
    LimitPoll,
    LimitReport,
    Meet,
    Message,
    NeedJobs,
    Pause,
    Ping,
    Pong,
    Postponed,
    Purge,
    Queued,
    QueueLimit,
    ReplJob,
    Result,
    SetAck,
    Suspect,
    Waiting,
    WillQueue,
    Working,
    YourJobs,
)
from tests.rig import CALM, JOB, ME, N2, N3, Rig, copy_of

STATES = ("unknown", "wait-repl", "active", "queued", "dead", "acked", "dummy")
BOTH = (N2, N3)
WEEK = 7 * 86_400_000
BURIED = DeadState(0, True, b"why", 86_401_200)
Sent = list[tuple[NodeId, Message]]


@attrs.frozen
class Outcome:
    """The state afterwards, and what is sent."""

    state: str
    sent: Callable[[JobId], Sent] = lambda _job_id: []


def to(receivers: tuple[NodeId, ...], make: Callable[[JobId], Message]) -> Callable[[JobId], Sent]:
    return lambda job_id: [(receiver, make(job_id)) for receiver in receivers]


def got_job(job_id: JobId) -> Message:
    return GotJob(job_id)


def set_ack(holders: int) -> Callable[[JobId], Sent]:
    return to((N2,), lambda job_id: SetAck(job_id, holders))


def got_ack(*, known: bool) -> Callable[[JobId], Sent]:
    return to((N2,), lambda job_id: GotAck(job_id, known=known))


def takes_over(job_id: JobId) -> Sent:
    """Answers who knows of no copy, and asks the holders itself."""
    asked: Sent = [(receiver, SetAck(job_id, 3)) for receiver in BOTH]
    return [(N2, GotAck(job_id, known=True)), *asked]


def same(job_id: JobId) -> Message:
    return ReplJob((copy_of(job_id, holders=(N2, N3, ME)),))


def given(job_id: JobId) -> Message:
    return YourJobs((copy_of(job_id, holders=(N2, N3, ME)),))


def dead(job_id: JobId) -> Message:
    """As the rig's job is dead."""
    return JobState(job_id, WEEK, BURIED)


def redriven(job_id: JobId) -> Message:
    return JobState(job_id, 60_000, DeadState(1, life=86_400_000))


# What is not written here leaves the job as it is and is met with silence.
TABLE: dict[str, tuple[Callable[[JobId], Message], dict[str, Outcome]]] = {
    "Ping": (lambda _: Ping(), {}),
    "Pong": (lambda _: Pong(), {}),
    "Meet": (lambda _: Meet(), {}),
    "Fail": (lambda _: Fail(N3), {}),
    "Suspect": (lambda _: Suspect(N3), {}),
    "QueueLimit": (lambda _: QueueLimit(b"r", 1, 1, 0, 0, 0, 0), {}),
    "LimitPoll": (lambda _: LimitPoll(b"r", 1), {}),
    "LimitReport": (lambda _: LimitReport(b"r", 1, 0, 0, 0, 0, 1000), {}),
    "LimitGrant": (lambda _: LimitGrant(b"r", 1, 1, 1), {}),
    "Pause": (lambda _: Pause(b"q", 3), {}),
    "Purge": (
        lambda _: Purge(b"q"),
        {"queued": Outcome("acked", to(BOTH, lambda job_id: SetAck(job_id, 3)))},
    ),
    "ReplJob": (
        same,
        {
            "unknown": Outcome("active", to((N2,), got_job)),
            "wait-repl": Outcome("wait-repl", to((N2,), got_job)),
            "active": Outcome("active", to((N2,), got_job)),
            "queued": Outcome("queued", to((N2,), got_job)),
            "dead": Outcome("dead", lambda job_id: [(N2, dead(job_id)), (N2, GotJob(job_id))]),
            "acked": Outcome("acked", set_ack(3)),
            "dummy": Outcome("dummy", set_ack(0)),
        },
    ),
    "GotJob": (GotJob, {}),
    "Enqueue": (Enqueue, {"active": Outcome("queued")}),
    "Enqueue later": (lambda job_id: Enqueue(job_id, delay=5), {}),
    "Queued": (
        lambda job_id: Queued(job_id, redelivery=True),
        {
            "queued": Outcome("active"),
            "dead": Outcome("dead", to((N2,), dead)),
            "acked": Outcome("acked", set_ack(3)),
            "dummy": Outcome("dummy", set_ack(0)),
        },
    ),
    "Working": (
        Working,
        {
            "queued": Outcome("active"),
            "dead": Outcome("dead", to((N2,), dead)),
            "acked": Outcome("acked", set_ack(3)),
            "dummy": Outcome("dummy", set_ack(0)),
        },
    ),
    "WillQueue": (
        WillQueue,
        {
            "queued": Outcome("queued", to(BOTH, Queued)),
            "dead": Outcome("dead", to((N2,), dead)),
            "acked": Outcome("acked", set_ack(3)),
            "dummy": Outcome("dummy", set_ack(0)),
        },
    ),
    "Result": (
        lambda job_id: Result(job_id, 3, 1, 60_000, b"done"),
        {
            "unknown": Outcome("unknown", got_ack(known=False)),
            "wait-repl": Outcome("acked", got_ack(known=True)),
            "active": Outcome("acked", got_ack(known=True)),
            "queued": Outcome("acked", got_ack(known=True)),
            "dead": Outcome("acked", got_ack(known=True)),
            "acked": Outcome("acked", got_ack(known=True)),
            "dummy": Outcome("dummy", got_ack(known=False)),
        },
    ),
    "SetAck of a holder": (
        lambda job_id: SetAck(job_id, 3),
        {
            "unknown": Outcome("unknown", got_ack(known=False)),
            "wait-repl": Outcome("acked", got_ack(known=True)),
            "active": Outcome("acked", got_ack(known=True)),
            "queued": Outcome("acked", got_ack(known=True)),
            "dead": Outcome("acked", got_ack(known=True)),
            "acked": Outcome("acked", got_ack(known=True)),
            "dummy": Outcome("dummy", got_ack(known=False)),
        },
    ),
    "SetAck of a dummy": (
        lambda job_id: SetAck(job_id, 0),
        {
            "unknown": Outcome("unknown", got_ack(known=False)),
            "wait-repl": Outcome("acked", takes_over),
            "active": Outcome("acked", takes_over),
            "queued": Outcome("acked", takes_over),
            "dead": Outcome("acked", takes_over),
            "acked": Outcome("acked", takes_over),
            "dummy": Outcome("dummy", got_ack(known=False)),
        },
    ),
    "GotAck, known": (
        lambda job_id: GotAck(job_id, known=True),
        {"dummy": Outcome("unknown")},
    ),
    "GotAck, unknown": (lambda job_id: GotAck(job_id, known=False), {}),
    "DelJob": (
        DelJob,
        {
            "wait-repl": Outcome("unknown", to(BOTH, DelJob)),
            "active": Outcome("unknown"),
            "queued": Outcome("unknown"),
            "dead": Outcome("unknown"),
            "acked": Outcome("unknown"),
            "dummy": Outcome("unknown"),
        },
    ),
    "NeedJobs": (lambda _: NeedJobs(b"q", 5), {"queued": Outcome("active")}),
    "Waiting": (
        lambda _: Waiting(b"q", 1),
        {"queued": Outcome("queued", lambda _: [(N2, HaveJobs(b"q", 1))])},
    ),
    "HaveJobs": (lambda _: HaveJobs(b"q", 0), {}),
    "Holders": (
        lambda job_id: Holders(job_id, (N2, N3, ME)),
        {"acked": Outcome("acked", set_ack(3)), "dummy": Outcome("dummy", set_ack(0))},
    ),
    "AckHolders": (
        lambda job_id: AckHolders(job_id, (N2, N3, ME)),
        {"dummy": Outcome("unknown")},
    ),
    "JobError": (
        lambda job_id: JobError(job_id, 5000, b"no"),
        {
            "acked": Outcome("acked", set_ack(3)),
            "dummy": Outcome("dummy", set_ack(0)),
        },
    ),
    "Postponed": (
        lambda job_id: Postponed(job_id, 5000, 1, is_new=True),
        {
            "queued": Outcome("active"),
            "dead": Outcome("dead", to((N2,), dead)),
            "acked": Outcome("acked", set_ack(3)),
            "dummy": Outcome("dummy", set_ack(0)),
        },
    ),
    "JobState, dead": (
        dead,
        {
            "active": Outcome("dead"),
            "queued": Outcome("dead"),
            "acked": Outcome("acked", set_ack(3)),
            "dummy": Outcome("dummy", set_ack(0)),
        },
    ),
    "JobState, redriven": (
        redriven,
        {
            "dead": Outcome("active"),
            "acked": Outcome("acked", set_ack(3)),
            "dummy": Outcome("dummy", set_ack(0)),
        },
    ),
    "Purge of the dead": (
        lambda _: Purge(b"q", dead=True),
        {"dead": Outcome("acked", to(BOTH, lambda job_id: SetAck(job_id, 3)))},
    ),
    "KeyClaim": (
        lambda _: KeyClaim(7, 1, JOB, 5, b"", b"q", b"key"),
        {state: Outcome(state, to((N2,), lambda _: KeyAnswer(7, 1, ()))) for state in STATES},
    ),
    "KeyAnswer": (lambda _: KeyAnswer(7, 1, ()), {}),
    "KeyCancel": (
        lambda job_id: KeyCancel(job_id, b"q", b"key"),
        {
            state: Outcome("acked", takes_over)
            for state in ("wait-repl", "active", "queued", "dead")
        },
    ),
    "YourJobs": (
        given,
        {
            "unknown": Outcome("queued", to((N3,), Queued)),
            "active": Outcome("queued", to((N3,), Queued)),
            "dead": Outcome("dead", to((N2,), dead)),
            "acked": Outcome("acked", set_ack(3)),
            "dummy": Outcome("dummy", set_ack(0)),
        },
    ),
}


def rig_in(state: str) -> tuple[Rig, JobId]:
    """A node that has the job in this state, and the job's id."""
    rig = Rig(peers=2, config=CALM)
    job_id = JOB
    if state == "wait-repl":
        rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 3)
        [job_id] = rig.node.jobs
    elif state not in ("unknown", "dummy"):
        rig.hold(copy_of(holders=(N2, N3, ME)))
    if state == "queued":
        rig.request("ENQUEUE", JOB)
    if state in ("acked", "dummy"):
        rig.request("ACKJOB", JOB)
    if state == "dead":
        rig.request("NACK", JOB, "DEAD", "why")
    rig.node.cluster.nodes[N2].capabilities |= BURIES
    rig.replies()
    rig.sent()
    assert state_of(rig, job_id) == state
    return rig, job_id


def state_of(rig: Rig, job_id: JobId) -> str:
    job = rig.node.jobs.get(job_id)
    if job is None:
        return "unknown"
    return "dummy" if job.is_dummy else STATE_NAMES[job.state].decode()


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", TABLE)
def test_what_a_message_does_to_a_job(name: str, state: str) -> None:
    make, outcomes = TABLE[name]
    outcome = outcomes.get(state, Outcome(state))
    rig, job_id = rig_in(state)
    if name == "Waiting":
        rig.node.cluster.nodes[N2].capabilities |= MEETS  # it reads offers
    deliveries = 0 if state in ("unknown", "dummy") else rig.node.jobs[job_id].deliveries

    rig.message(N2, make(job_id))

    assert state_of(rig, job_id) == outcome.state
    if (name, state) == ("NeedJobs", "queued"):
        [(receiver, message)] = rig.sent()
        assert receiver == N2
        assert isinstance(message, YourJobs)
        assert [copy.id for copy in message.copies] == [job_id]
    else:
        assert rig.sent() == outcome.sent(job_id)
    job = rig.node.jobs.get(job_id)
    if job is not None and not job.is_dummy and state != "unknown":
        counts = name == "Queued" and state in ("wait-repl", "active", "queued")
        starts_anew = name == "JobState, redriven"
        assert job.deliveries == (0 if starts_anew else deliveries + counts)


@pytest.mark.parametrize("name", TABLE)
def test_what_a_message_says_to_a_client_whose_job_waits(name: str) -> None:
    rig, job_id = rig_in("wait-repl")

    rig.message(N2, TABLE[name][0](job_id))

    expected = {
        "SetAck of a holder": [Status(job_id)],
        "Result": [Status(job_id)],
        "SetAck of a dummy": [Status(job_id)],
        "KeyCancel": [Status(job_id)],
        "DelJob": [
            Failure(
                b"NOREPL job removed (expired?) before the requested replication level was achieved"
            )
        ],
    }
    assert rig.replies() == expected.get(name, [])


def test_the_table_has_every_message_that_there_is() -> None:
    types = {type(make(JOB)) for make, _ in TABLE.values()}

    assert types == {*ON_MESSAGE, *GossipMessage.__subclasses__()}
