from disque_trio.statemachine import resend
from disque_trio.statemachine.base import FAIL, MYSELF, NodeId
from disque_trio.statemachine.job import make_id
from disque_trio.statemachine.messages import DelJob, Frame, GotAck, Pong, SetAck
from tests.rig import CALM, JOB, ME, N2, N3, Rig, copy_of
from tests.statemachine.acknowledging import BY_UNKNOWN_NODE, rig_with_job


def returns(rig: Rig, name: NodeId, announced: int = 0) -> None:
    """Our link to the member comes up again, and it answers the first ping."""
    rig.lose_link(name)
    rig.advance(200)
    rig.machine.linked(rig.node.cluster.nodes[name].link, "127.0.0.1", "127.0.0.2", rig.now)
    rig.sent()
    answers(rig, name, announced)


def answers(rig: Rig, name: NodeId, announced: int = 0) -> None:
    link = rig.node.cluster.nodes[name].link
    rig.machine.message(link, Frame(name, 7711, MYSELF, Pong(), announced), rig.now)
    rig.take()


def with_acks(count: int) -> Rig:
    """N2 and N3 hold that many jobs, which are acknowledged here, and have not confirmed it."""
    rig = Rig(peers=2, config=CALM)
    for number in range(1, count + 1):
        job_id = make_id(N2, number, 86_400, at_least_once=True)
        rig.hold(copy_of(job_id, holders=(N2, N3, ME)))
        rig.ask("ACKJOB", job_id)
    rig.sent()
    return rig


# What a node that returns is sent.


def test_a_holder_that_returns_is_told_of_the_ack_at_once() -> None:
    rig = rig_with_job(N2, N3, ME)
    rig.ask("ACKJOB", JOB)

    returns(rig, N2)

    assert rig.sent() == [(N2, SetAck(JOB, 3))]


def test_its_answer_counts_as_ever() -> None:
    rig = rig_with_job(N2, N3, ME)
    rig.ask("ACKJOB", JOB)
    rig.message(N3, GotAck(JOB, known=True))
    returns(rig, N2)
    rig.sent()

    rig.message(N2, GotAck(JOB, known=True))

    assert rig.sent() == [(N2, DelJob(JOB)), (N3, DelJob(JOB))]
    assert rig.node.jobs == {}


def test_the_next_attempt_comes_when_it_would_have_come() -> None:
    rig = rig_with_job(N2, N3, ME)
    rig.ask("ACKJOB", JOB)
    before = rig.node.jobs[JOB].gc_at, rig.node.jobs[JOB].gc_attempt

    returns(rig, N2)

    assert (rig.node.jobs[JOB].gc_at, rig.node.jobs[JOB].gc_attempt) == before


def test_whoever_has_confirmed_is_not_asked_again() -> None:
    rig = rig_with_job(N2, N3, ME)
    rig.ask("ACKJOB", JOB)
    rig.message(N2, GotAck(JOB, known=True))

    returns(rig, N2)

    assert rig.sent() == []


def test_whoever_holds_no_copy_is_not_asked() -> None:
    rig = rig_with_job(N2, ME)
    rig.ask("ACKJOB", JOB)

    returns(rig, N3)

    assert rig.sent() == []


def test_one_whose_client_acknowledged_it_elsewhere_passes_the_word_on() -> None:
    # The acker may have ended meanwhile, or have no link to the one that has returned.
    rig = rig_with_job(N2, N3, ME)
    rig.message(N2, SetAck(JOB, 3))
    rig.sent()

    returns(rig, N3)
    rig.message(N3, GotAck(JOB, known=True))

    assert rig.sent() == [(N3, SetAck(JOB, 3))]
    assert rig.node.jobs[JOB].confirmed == (ME, N3)


def test_a_dummy_ack_is_told_to_whoever_returns() -> None:
    rig = Rig(peers=2, config=CALM)
    rig.ask("ACKJOB", BY_UNKNOWN_NODE)

    returns(rig, N3)

    assert rig.sent() == [(N3, SetAck(BY_UNKNOWN_NODE, 0))]


def test_a_node_that_was_reported_as_failing_is_told_on_the_same_link() -> None:
    # A link that is full drops frames, and nobody closes it.
    rig = rig_with_job(N2, N3, ME)
    answers(rig, N2)
    rig.ask("ACKJOB", JOB)
    rig.sent()
    rig.node.cluster.nodes[N2].flags |= FAIL

    answers(rig, N2)

    assert rig.sent() == [(N2, SetAck(JOB, 3))]


def test_an_answer_on_a_link_that_was_up_says_nothing_new() -> None:
    rig = rig_with_job(N2, N3, ME)
    answers(rig, N2)
    rig.ask("ACKJOB", JOB)
    rig.sent()

    answers(rig, N2)

    assert rig.sent() == []


def test_jobs_without_an_ack_are_skipped() -> None:
    # One that is delivered once at most may be evicted as well, so it stands among the acks.
    rig = Rig(peers=2, config=CALM)
    job = rig.add("RETRY", 0, "REPLICATE", 1)
    rig.ask("GETJOB", "FROM", "q")
    rig.sent()
    assert job.id in rig.node.memory.evictable

    returns(rig, N2)

    assert rig.sent() == []


# Many jobs.


def test_many_acks_are_told_in_slices_the_oldest_first() -> None:
    rig = with_acks(5)
    rig.turn(resend_looks=2)
    ids = list(rig.node.jobs)

    returns(rig, N2)
    assert rig.sent() == [(N2, SetAck(job_id, 3)) for job_id in ids[:2]]

    rig.advance(resend.RUN_EVERY + 8)
    assert rig.sent() == [(N2, SetAck(job_id, 3)) for job_id in ids[2:4]]

    rig.advance(2 * resend.RUN_EVERY)
    assert rig.sent() == [(N2, SetAck(ids[4], 3))]
    assert rig.node.resend.ids == []


def test_the_oldest_come_first_whatever_has_been_collected_before() -> None:
    rig = with_acks(5)
    ids = list(rig.node.jobs)
    for gone in (ids.pop(0), ids.pop(2)):
        rig.message(N2, DelJob(gone))
    rig.ask("ACKJOB", BY_UNKNOWN_NODE)
    rig.sent()

    returns(rig, N2)

    told = [message.id for _, message in rig.sent() if isinstance(message, SetAck)]
    assert told == [*ids, BY_UNKNOWN_NODE]


def test_whoever_returns_meanwhile_has_the_next_pass() -> None:
    rig = with_acks(3)
    rig.turn(resend_looks=2)
    returns(rig, N2)

    rig.sent()
    answers(rig, N3)
    rig.advance(4 * resend.RUN_EVERY)

    told = [to for to, _ in rig.sent()]
    assert told == [N2, N3, N3, N3]


def test_a_job_that_is_collected_meanwhile_is_left_out() -> None:
    rig = with_acks(3)
    rig.turn(resend_looks=2)
    last = list(rig.node.jobs)[-1]
    returns(rig, N2)
    rig.sent()

    rig.message(N3, DelJob(last))
    rig.advance(2 * resend.RUN_EVERY)

    assert rig.sent() == []


def test_nothing_is_kept_for_a_node_whose_link_has_gone_again() -> None:
    rig = with_acks(7)
    rig.turn(resend_looks=2)
    returns(rig, N2)
    rig.lose_link(N2)
    rig.sent()

    rig.advance(resend.RUN_EVERY + 8)

    assert rig.sent() == []
    assert rig.node.resend.ids == []


def test_a_forgotten_node_is_sent_nothing_more() -> None:
    rig = with_acks(7)
    rig.turn(resend_looks=2)
    returns(rig, N2)
    rig.ask("CLUSTER", "FORGET", N2)
    rig.sent()

    rig.advance(resend.RUN_EVERY + 8)

    assert rig.sent() == []
