"""Who holds a job, and why."""

import attrs

from disque_trio.client.records import JobDetails
from disque_trio.explain.holders import holders_of, reasons
from disque_trio.explain.zones import Place

JOB = "D-aaaaaaaa-T5Z5SE-05a1"
SHOWN = JobDetails(
    id=JOB, queue="q", body=b"", state="active", repl=3, ttl=1, ctime=0, delay=0, retry=1, nacks=0,
    additional_deliveries=0, nodes_delivered=(), nodes_confirmed=(), next_requeue_within=None,
    next_awake_within=None,
)  # fmt: skip


def place(letter: str, zone: str = "", host: str = "here") -> Place:
    return Place(where=f"n{letter}", id=letter * 40, host=host, zone=zone)


def why(*holders: Place, others: tuple[Place, ...] = ()) -> list[str]:
    return reasons(JOB, holders, [*holders, *others])


def test_each_zone_is_chosen_before_one_is_chosen_again() -> None:
    assert why(place("a", "x"), place("b", "y"), place("c", "x")) == [
        "it received the ADDJOB",
        "the first in zone y",
        "one more in zone x: there is no node in a zone with fewer replicas",
    ]


def test_a_zone_that_was_passed_over_is_named() -> None:
    (_, reason) = why(place("a", "x"), place("b", "x"), others=(place("c", "y"),))

    assert reason == (
        "one more in zone x: the nodes in zone y could not be reached, or cannot hold the job"
    )


def test_without_zones_another_address_is_chosen_first() -> None:
    assert why(place("a", host="h1"), place("b", host="h2"), place("c", host="h1"))[1:] == [
        "the first at address h2: no node names a zone",
        "one more at address h1: no node names a zone",
    ]


def test_without_either_nodes_are_drawn() -> None:
    assert why(place("a"), place("b"))[1] == "all nodes get a replica"
    assert why(place("a"), place("b"), others=(place("c"),))[1] == (
        "selected at random from the reachable nodes"
    )


def test_a_node_that_gave_the_job_away_is_not_among_its_holders() -> None:
    assert why(place("b", "x"), others=(place("a", "x"),)) == ["the first in zone x"]


def test_a_holder_has_a_copy_or_none_yet_or_does_not_answer() -> None:
    nodes = [place("a", "x"), place("b", "y"), place("c", "z")]
    ids = tuple(node.id for node in nodes)
    shown = attrs.evolve(SHOWN, nodes_delivered=(*ids, "d" * 40))
    found = holders_of(JOB, {ids[0]: shown}, nodes, silent={ids[2]})

    assert [each.state for each in found] == ["active", "none", "unknown", "unknown"]
    assert [each.is_confirmed for each in found] == [True, False, False, False]
    assert [each.node for each in found] == ["na", "nb", "nc", "dddddddd"]


def test_a_copy_of_which_no_list_knows_is_shown() -> None:
    nodes = [place("a"), place("b")]
    ids = [node.id for node in nodes]
    shown = attrs.evolve(SHOWN, nodes_delivered=(ids[0],))

    assert len(holders_of(JOB, {ids[0]: shown, ids[1]: shown}, nodes, silent=())) == 2
