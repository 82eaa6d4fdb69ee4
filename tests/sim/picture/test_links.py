import pytest

from disque_trio.sim.picture.links import (
    NO_MATE,
    agent_names,
    lifeline,
    link,
    node_names,
    numbers,
    other,
)
from disque_trio.sim.scenarios.plan import Add, Plan
from disque_trio.tracing import client_rows
from disque_trio.tracing.rows import Row
from tests.sim.picture import examples


def test_a_row_that_a_client_writes_is_on_its_lifeline() -> None:
    row = Row(0, "ack.ok", "n2", "J", client="c1")

    assert (lifeline(row), other(row)) == ("c1", "n2")


@pytest.mark.parametrize(
    "words",
    ["PURGE q", "PURGE q DEAD", "REDRIVE q", "RELEASE J", "WAITJOB J", "NACK J", "ADDJOB q b 0"],
)
def test_whatever_a_client_asks_is_on_its_lifeline(words: str) -> None:
    [note] = client_rows.invoked(words.encode().split())

    assert lifeline(Row(0, note.kind, "n2", client="c1")) == "c1"


def test_a_serve_is_on_the_lifeline_of_the_node() -> None:
    row = Row(0, "serve", "n2", "J", client="c1")

    assert (lifeline(row), other(row)) == ("n2", "c1")


def test_an_event_of_the_whole_cluster_has_no_lifeline() -> None:
    assert lifeline(Row(0, "chaos.end")) == ""


def test_nodes_that_join_come_after_those_of_the_plan() -> None:
    rows = [Row(0, "start", "n4"), Row(0, "start", "n1")]

    assert node_names(Plan(scenario="s", seed=0, nodes=3), rows) == ["n1", "n2", "n3", "n4"]


def test_live_nodes_have_names_of_their_own() -> None:
    rows = [Row(0, "send", "0a1b2c3d", peer="4e5f6a7b"), Row(0, "start", "4e5f6a7b")]

    assert node_names(Plan(scenario="live", seed=0, nodes=2), rows) == ["0a1b2c3d", "4e5f6a7b"]


def test_producers_are_in_order_of_their_numbers() -> None:
    adds = tuple(Add(at=0, node=1, producer=name, queue="q", body="") for name in ("p10", "p2"))
    plan = Plan(scenario="s", seed=0, nodes=1, adds=adds)

    assert agent_names(plan, [Row(0, "get.deliver", "n1", client="c7")]) == ["p2", "p10", "c7"]


def test_the_mate_of_a_message_is_its_send() -> None:
    rows = [
        Row(0, "send", "n1", "J", peer="n2", cause="setack", ref=1),
        Row(0, "send", "n1", "J", peer="n3", cause="setack", ref=2),
        Row(1, "lost", "n1", "J", peer="n3", cause="setack", ref=2),
        Row(2, "recv", "n2", "J", peer="n1", cause="setack", ref=1),
    ]

    assert link(rows).mates == [NO_MATE, NO_MATE, 1, 0]


def test_messages_without_numbers_are_paired_by_what_they_say() -> None:
    rows = [
        Row(0, "send", "a", "J", peer="b", cause="setack"),
        Row(0, "send", "a", "K", peer="b", cause="setack"),
        Row(1, "recv", "b", "J", peer="a", cause="setack"),
        Row(2, "recv", "b", "K", peer="c", cause="setack"),
    ]

    assert link(rows).mates == [NO_MATE, NO_MATE, 0, NO_MATE]


def test_the_mate_of_a_delivery_is_its_serve() -> None:
    rows = examples.calm()
    mates = link(rows).mates
    delivery = next(index for index, row in enumerate(rows) if row.kind == "get.deliver")

    assert rows[mates[delivery]].kind == "serve"


def test_an_invocation_gets_the_job_of_its_outcome() -> None:
    rows = examples.calm()

    assert rows[0].kind == "add.invoke"
    assert rows[0].job == ""
    assert link(rows).jobs[0] == examples.job_id(1)


def test_the_body_tells_the_job_of_an_add_whose_outcome_nobody_knows() -> None:
    rows = [
        Row(0, "add.invoke", "n1", queue="q", client="p1", ref=1, detail="timeout=1 body=b7"),
        Row(1, "add.unknown", "n1", queue="q", client="p1", ref=1, cause="timeout"),
        Row(2, "get.deliver", "n2", "J", "q", "c1", detail="nacks=0 additional=0 body=b7"),
    ]

    assert link(rows).jobs == ["J", "J", "J"]


def test_one_command_about_two_jobs_is_two_operations() -> None:
    rows = [
        Row(0, "ack.invoke", "n1", "J", client="c1", ref=1),
        Row(0, "ack.invoke", "n1", "K", client="c1", ref=1),
        Row(1, "ack.ok", "n1", "J", client="c1", ref=1),
        Row(1, "ack.ok", "n1", "K", client="c1", ref=1),
    ]

    assert link(rows).mates == [NO_MATE, NO_MATE, 0, 1]


def test_a_message_with_two_jobs_belongs_to_both() -> None:
    row = Row(0, "send", "n1", peer="n2", cause="yourjobs", ref=1, detail="jobs=J,K holders=n1;n1")
    links = link([row])

    assert links.shared == [(0, "J"), (0, "K")]
    assert numbers(links) == {"J": 0, "K": 1}
