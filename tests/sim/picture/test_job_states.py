from disque_trio.sim.picture.job_states import JobState, JobStates, Move
from disque_trio.tracing.rows import Row

NODES = ["n1", "n2", "n3"]


def after(*rows: Row) -> str:
    states = JobStates()
    for row in rows:
        states.see(row)
    return states.of("J", NODES)


def hold(node: str, cause: str) -> Row:
    return Row(0, "hold", node, "J", cause=cause)


def test_a_job_is_being_copied_until_its_add_succeeds() -> None:
    added = hold("n1", "add")

    assert after(added) == "w.."
    assert after(added, hold("n2", "repljob")) == "wh."
    assert after(added, Row(1, "add.ok", "n1", "J", client="p1")) == "h.."


def test_a_job_goes_into_the_queue_and_out() -> None:
    queued = (hold("n1", "add"), Row(1, "queue", "n1", "J", cause="first"))

    assert after(*queued) == "Q.."
    assert after(*queued, Row(2, "unqueue", "n1", "J", cause="served")) == "h.."


def test_an_ack_by_a_client_differs_from_one_that_a_node_announced() -> None:
    held = (hold("n1", "add"), hold("n2", "repljob"))

    assert after(*held, Row(2, "acked", "n1", "J", cause="ackjob")) == "Kh."
    assert after(*held, Row(2, "acked", "n2", "J", cause="setack")) == "wk."


def test_a_dead_job_is_marked_until_it_is_redriven() -> None:
    dead = (
        hold("n1", "add"), hold("n2", "repljob"), Row(1, "queue", "n1", "J", cause="first"),
        Row(2, "unqueue", "n1", "J", cause="buried"), Row(2, "dead", "n1", "J", cause="nack-dead"),
        Row(3, "dead", "n2", "J", cause="jobstate"),
    )  # fmt: skip

    assert after(*dead) == "xx."
    assert after(*dead, Row(4, "redrive", "n1", "J", cause="redriven")) == "hx."
    assert after(*dead, Row(4, "acked", "n2", "J", cause="ackjob")) == "xK."


def test_one_whose_copies_are_awaited_is_not_dead_yet() -> None:
    noted = Row(1, "dead", "n1", "J", cause="jobstate", detail="redriven=0 left=9 wait-repl")

    assert after(hold("n1", "add"), noted) == "w.."


def test_leaving_the_queue_does_not_undo_an_ack() -> None:
    acked = (hold("n1", "add"), Row(2, "acked", "n1", "J", cause="ackjob"))

    assert after(*acked, Row(2, "unqueue", "n1", "J", cause="acked")) == "K.."


def test_a_dummy_is_no_copy() -> None:
    assert after(hold("n3", "dummy")) == "..d"
    assert not JobState.DUMMY.is_copy
    assert JobState.WAITING.is_copy


def test_a_dropped_job_leaves_nothing() -> None:
    assert after(hold("n1", "add"), Row(1, "drop", "n1", "J", cause="expired")) == "..."


def test_a_crash_takes_every_job_of_the_node_with_it() -> None:
    states = JobStates()
    for job in ("J", "K"):
        states.see(Row(0, "hold", "n1", job, cause="add"))
        states.see(Row(0, "hold", "n2", job, cause="repljob"))

    moves = states.see(Row(1, "crash", "n1", cause="kill"))

    assert moves == [
        Move("n1", "J", JobState.WAITING, JobState.NONE),
        Move("n1", "K", JobState.WAITING, JobState.NONE),
    ]
    assert states.of("J", NODES) == ".h."


def test_a_row_that_changes_nothing_moves_nothing() -> None:
    states = JobStates()
    states.see(hold("n1", "repljob"))

    assert states.see(hold("n1", "repljob")) == []
    assert states.see(Row(1, "send", "n1", "J", peer="n2")) == []
    assert states.see(Row(1, "cut", "n1", peer="n2")) == []
