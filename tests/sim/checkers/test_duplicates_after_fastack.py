"""D9: FASTACK is said once, and asks nobody whether it came."""

import pytest

from disque_trio.sim.scenarios.plan import LinkPlan
from tests.sim.checkers.duplicated import again, leased
from tests.sim.checkers.test_durability import back, fallen, held
from tests.sim.checkers.trace import JOB, Trace


@pytest.mark.parametrize(
    ("stopped", "cause"), [("n1", "D9"), ("n3", "D9"), ("n2", "D6"), ("", "D6")]
)
def test_d9_the_node_of_the_fastack_could_not_be_told_of_a_holder_that_was_added_later(
    stopped: str, cause: str
) -> None:
    trace = Trace()
    trace.add(0, to=("n3",), options="replicate=2 retry=10 ttl=3600")
    if stopped:
        trace.row(0.1, "pause", stopped)
        trace.row(0.2, "resume", stopped)
    trace.copy(0.5, "n1", "n2")
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    trace.fastack(5, "n3")
    trace.send(5.001, "deljob", "n3", "n1")
    trace.row(5.003, "drop", "n1", job=JOB, cause="deljob")
    again(trace, 10.9)

    assert trace.verdict().duplicates == {cause: 1}


@pytest.mark.parametrize(("sent", "cause"), [(4.9995, "D9"), (4, "D6")])
def test_d9_the_list_with_a_holder_was_under_way_to_the_node_of_the_fastack(
    sent: float, cause: str
) -> None:
    trace = Trace()
    trace.add(0, to=("n3",), options="replicate=2 retry=10 ttl=3600")
    trace.serve(1)
    trace.working(1, "n1", "n3")
    trace.copy(sent, "n1", "n2")
    trace.fastack(5, "n3")
    trace.send(5.001, "deljob", "n3", "n1")
    trace.row(5.003, "drop", "n1", job=JOB, cause="deljob")
    again(trace, 14.9, "n2")

    assert trace.verdict().duplicates == {cause: 1}


def test_d9_fastack_could_not_reach_a_holder() -> None:
    trace = leased()
    trace.cut(2, ["n1"], ["n2"], until=50)
    trace.fastack(5)
    trace.send(5.001, "deljob", "n1", "n3")
    trace.row(5.003, "drop", "n3", job=JOB, cause="deljob")
    trace.send(5.001, "deljob", "n1", "n2", lost=13)
    again(trace, 12)

    assert trace.verdict().duplicates == {"D9": 1}


@pytest.mark.parametrize(
    ("server", "cut", "is_told", "cause"),
    [
        ("n1", 2, False, "D9"),
        ("n4", 2, False, "D9"),
        ("n1", 5.05, False, "DX"),
        ("n4", 5.05, False, "DX"),
        ("n1", 2, True, "DX"),
        ("n4", 2, True, "DX"),
    ],
)
def test_d9_a_holder_that_fastack_could_not_reach_sent_the_copy(
    server: str, cut: float, is_told: bool, cause: str
) -> None:
    """n2 gives the job to a node that does not know of it, or has forgotten FASTACK in a crash;
    there it is delivered twice."""
    trace = leased(Trace(nodes=4))
    trace.cut(cut, ["n1"], ["n2"], until=7)
    trace.fastack(5)
    trace.send(5.001, "deljob", "n1", "n3")
    trace.row(5.003, "drop", "n3", job=JOB, cause="deljob")
    if is_told:
        trace.send(5.001, "deljob", "n1", "n2")
    if server == "n1":
        trace.crash(5.1, "n1", back=6)
    trace.requeue(12, "n2")
    trace.row(12, "unqueue", "n2", job=JOB, cause="given")
    trace.row(12, "give", "n2", job=JOB, peer=server, cause="given")
    trace.send(12, "yourjobs", "n2", server, detail=f"jobs={JOB} holders=n1,n2,n3,{server}")
    trace.row(12.002, "hold", server, job=JOB, cause="yourjobs")
    trace.requeue(12.002, server, "import")
    trace.serve(12.002, server, "c2")
    again(trace, 24, server)

    assert trace.verdict().duplicates == {cause: 2}


@pytest.mark.parametrize(
    ("cut", "told", "cause"),
    [(2, None, "D9"), (6, None, "DX"), (6, 5.1, "DX"), (6, 7, "D9"), (6, 7.5, "D9")],
)
def test_d9_only_of_what_was_in_the_way_when_fastack_was_said_or_on_its_way(
    cut: float, told: float | None, cause: str
) -> None:
    """n2 has queued the job itself, and receives FASTACK before a cut, or after it, or never."""
    trace = leased()
    trace.cut(cut, ["n1"], ["n2"], until=7)
    trace.fastack(5)
    trace.send(5.001, "deljob", "n1", "n3")
    trace.row(5.003, "drop", "n3", job=JOB, cause="deljob")
    if told:
        trace.send(5.001, "deljob", "n1", "n2", lag=told - 5.001)
    again(trace, 6.5 if told and told > 6 else 12)

    assert trace.verdict().duplicates == {cause: 1}


@pytest.mark.parametrize(("stopped", "cause"), [(4.9, "D9"), (6, "DX")])
def test_d9_of_a_stop_only_if_it_ended_the_link_before_fastack_was_said(
    stopped: float, cause: str
) -> None:
    trace = leased()
    trace.row(stopped, "pause", "n2")
    trace.row(stopped + 0.05, "resume", "n2")
    trace.fastack(5)
    trace.send(5.001, "deljob", "n1", "n3")
    trace.row(5.003, "drop", "n3", job=JOB, cause="deljob")
    again(trace, 12)

    assert trace.verdict().duplicates == {cause: 1}


@pytest.mark.parametrize(("asked", "cause"), [(4, "D9"), (4.9, "DX")])
def test_d9_a_link_was_given_up_though_its_nodes_have_met_again_since(
    asked: float, cause: str
) -> None:
    trace = leased(Trace(link=LinkPlan(model="hostile")))
    trace.send(asked, "ping", "n1", "n2", "", lag=None)
    trace.fastack(5)
    trace.send(5.001, "deljob", "n1", "n3")
    trace.row(5.003, "drop", "n3", job=JOB, cause="deljob")
    trace.send(6, "ping", "n1", "n2", "")
    trace.send(6.002, "pong", "n2", "n1", "")
    for time in (7, 8):
        trace.send(time, "ping", "n1", "n2", "", lag=None)
    again(trace, 12)

    assert trace.verdict().duplicates == {cause: 1}


@pytest.mark.parametrize(("is_loaded", "cause"), [(False, "D3a"), (True, "DX")])
def test_d3a_a_holder_has_lost_what_it_had_learned_later(is_loaded: bool, cause: str) -> None:
    """n2 is down when FASTACK is announced, and the answer to its question about the job is lost
    with the power. everything, seed 5350."""
    trace = held("no")
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    fallen(trace, 4, "n2")
    trace.fastack(5)
    trace.send(5.001, "deljob", "n1", "n3")
    trace.row(5.003, "drop", "n3", job=JOB, cause="deljob")
    back(trace, 6, "n2", has_job=True)
    trace.setack(8, "n1", "n2")
    fallen(trace, 9, "n2", "power")
    back(trace, 10, "n2", has_job=True, acked=is_loaded)
    again(trace, 21)

    assert trace.verdict().duplicates == {cause: 1}
