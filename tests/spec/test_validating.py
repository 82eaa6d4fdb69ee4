import attrs
import pytest

from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row
from tests.sim.mutants.mutant import all_mutants
from tests.sim.mutants.swapping import applied
from tests.sim.runs import plan
from tests.spec.validating import SWARM, Case, cases, check, validate

CALM = plan(jobs=12, workers=(1, 3))
MUTANTS = (
    "all-but-one-holder-is-asked",
    "sync-answers-one-copy-early",
    "confirmed-by-one",
    "confirmed-without-a-copy",
    "collected-at-once",
    "ignoring-setack",
    "holders-listed-twice",
    "ack-not-kept",
    "cleaned-up-after-success",
)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "what", [CALM, expand(load(SWARM), 3)], ids=["a calm run", "a seed of the swarm"]
)
def test_each_event_of_a_run_is_a_step_of_the_specification(what: Plan) -> None:
    result = validate(what)

    assert result.jobs >= 12
    assert not result.findings, [str(each) for each in result.findings]


@pytest.mark.sample(9)
@pytest.mark.pure
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mistake_in_the_code_is_no_step_of_the_specification(name: str) -> None:
    with applied(all_mutants()[name]):
        result = validate(CALM)

    assert result.findings


def test_a_delivery_of_a_job_that_is_not_queued_is_found() -> None:
    found = check(_case("serve served"))

    assert found is not None
    assert found.row.kind == "serve"


def test_a_job_that_returns_without_a_message_is_found() -> None:
    found = check(_case("queue first", "serve served", "acked ackjob", "drop collected"))
    again = check(
        _case("queue first", "serve served", "acked ackjob", "drop collected", "hold repljob")
    )

    assert found is None
    assert again is not None
    assert again.row.kind == "hold"


def test_an_event_without_the_message_that_it_follows_from_is_found() -> None:
    sent = [("send repljob n1 n2", "holders=n1,n2"), ("send repljob n1 n2", "holders=n1,n2")]

    found = check(_between_two(*sent, ("recv repljob n2 n1", ""), ("hold repljob n2", "")))
    unread = check(_between_two(*sent, ("hold repljob n2", "")))

    assert found is None
    assert unread is not None
    assert "has not read" in unread.why


@pytest.mark.parametrize(
    ("message", "event"), [("setack", "acked setack n2"), ("deljob", "drop deljob n2")]
)
def test_a_message_without_the_step_that_follows_from_it_is_found(message: str, event: str) -> None:
    before = [
        ("send repljob n1 n2", "holders=n1,n2"),
        ("recv repljob n2 n1", ""),
        ("hold repljob n2", ""),
        ("queue first n1", ""),
        ("acked ackjob n1" if message == "setack" else "drop fastack n1", ""),
        (f"send {message} n1 n2", "holders=2"),
        (f"recv {message} n2 n1", ""),
    ]
    last = ("send gotjob n2 n1", "")

    found = check(_between_two(*before, (event, ""), last))
    idle = check(_between_two(*before, last))

    assert found is None or found.row.cause == "gotjob"
    assert idle is not None
    assert f"n2 has read {message} of n1" in idle.why


@pytest.mark.parametrize(
    ("message", "right", "wrong"),
    [
        ("yourjobs", "holders=n1,n2", "holders=n2"),
        ("setack", "holders=2", "holders=3"),
        ("holders", "holders=n1,n2", "holders=n1"),
    ],
)
def test_a_message_with_another_list_of_holders_than_its_node_has_is_found(
    message: str, right: str, wrong: str
) -> None:
    event = {"yourjobs": "give given n1 n2", "setack": "acked ackjob n1"}.get(message)
    before = [
        ("send repljob n1 n2", "holders=n1,n2"),
        ("recv repljob n2 n1", "holders=n1,n2"),
        ("hold repljob n2", ""),
        ("queue first n1", ""),
        *([(event, "")] if event else []),
    ]

    found = check(_between_two(*before, (f"send {message} n1 n2", right)))
    other = check(_between_two(*before, (f"send {message} n1 n2", wrong)))

    assert found is None
    assert other is not None
    assert other.row.cause == message


def test_a_node_does_not_know_a_list_that_it_has_not_read() -> None:
    before = [
        ("send repljob n1 n2", "holders=n1,n2"),
        ("send repljob n1 n2", "holders=n1,n2,n3"),
        ("recv repljob n2 n1", "holders=n1,n2"),
        ("hold repljob n2", ""),
    ]

    found = check(_between_two(*before, ("send holders n2 n1", "holders=n1,n2")))
    other = check(_between_two(*before, ("send holders n2 n1", "holders=n1,n2,n3")))

    assert found is None
    assert other is not None


def test_a_sender_is_no_holder_before_its_message_is_read() -> None:
    before = [
        ("send repljob n1 n2", "holders=n2"),
        ("send working n1 n2", ""),
        ("recv repljob n2 n1", "holders=n2"),
        ("hold repljob n2", ""),
        ("acked ackjob n2", ""),
    ]

    found = check(_between_two(*before, ("send setack n2 n1", "holders=1")))
    other = check(_between_two(*before, ("send setack n2 n1", "holders=2")))

    assert found is None
    assert other is not None


def test_a_job_whose_addjob_returned_unseen_may_be_announced() -> None:
    found = check(
        _between_two(
            ("send repljob n1 n2", "holders=n1,n2"),
            ("recv repljob n2 n1", "holders=n1,n2"),
            ("hold repljob n2", ""),
            ("send gotjob n2 n1", ""),
            ("recv gotjob n1 n2", ""),
            ("send willqueue n1 n2", ""),
        )
    )

    assert found is None


def test_the_first_part_of_a_step_without_the_rest_is_found() -> None:
    found = check(_case("queue first", "unqueue served", "acked ackjob"))

    assert found is not None
    assert found.row.kind == "acked"
    assert found.why == "an event before it is only the first part of another step"


def test_an_acknowledgement_that_a_synced_journal_has_lost_is_found() -> None:
    events = ("queue first", "serve served", "acked ackjob", *["crash kill", "start loaded"])
    known = _case(*events, "hold loaded", "acked loaded", "drop collected")
    lost = _case(*events, "hold loaded", "queue retry")

    for case, is_right in ((known, True), (lost, False)):
        rows = [attrs.evolve(row, time=row.time * 10_000_000) for row in case.rows]
        synced = attrs.evolve(case, rows=tuple(rows), journal="late", is_synced=True)
        assert (check(synced) is None) == is_right


def test_a_job_without_replicate_needs_no_more_copies_than_the_cluster_has_nodes() -> None:
    options = "retry=5 delay=0 made=0 body=1 left=86400000"
    rows = [
        Row(-5, "start", "n1", cause="fresh"),
        Row(0, "add.invoke", "n1", queue="q", ref=1, detail="timeout=1000 body=b"),
        Row(0, "hold", "n1", "j", queue="q", cause="add", detail=f"replicate=2 {options}"),
        Row(0, "add.ok", "n1", "j", queue="q", ref=1),
    ]

    [of_two_nodes] = cases(rows, {"default-replicate": "4"})
    rows[1] = attrs.evolve(rows[1], detail="timeout=1000 replicate=3 body=b")
    [asked_for_three] = cases(rows, {"default-replicate": "4"})

    assert of_two_nodes.need == 2
    assert asked_for_three.need == 3


def test_only_a_job_with_a_key_must_not_return_once_its_addjob_has_failed() -> None:
    found = check(
        _between_two(
            ("send repljob n1 n2", "holders=n1,n2"),
            ("recv repljob n2 n1", ""),
            ("hold repljob n2", ""),
            ("drop add-failed n1", ""),
            ("send deljob n1 n2", ""),
            ("send repljob n2 n1", "holders=n1,n2"),
            ("recv repljob n1 n2", ""),
            ("hold repljob n1", ""),
        )
    )

    assert found is None


def _between_two(*events: tuple[str, str]) -> Case:
    """Of a job that n1 has added. What a node reads leads to events of the same moment."""
    rows = [
        Row(-5, "start", "n1", cause="fresh"),
        Row(-5, "start", "n2", cause="fresh"),
        Row(0, "hold", "n1", "j", cause="add", detail="retry=5 "),
    ]
    for event, detail in events:
        kind, cause, node, *peer = event.split()
        time = rows[-1].time + (rows[-1].kind != "recv")
        row = Row(time, kind, node, "j", peer="".join(peer), cause=cause, detail=detail)
        rows.append(attrs.evolve(row, queue="q"))
    return Case("j", tuple(rows), frozenset(["n1", "n2"]), frozenset(), 1, "none")


def _case(*events: str) -> Case:
    rows = [
        Row(-5, "start", "n1", cause="fresh"),
        Row(0, "hold", "n1", "j", cause="add", detail="retry=5 "),
    ]
    for time, event in enumerate(events, 1):
        kind, _, cause = event.partition(" ")
        job = "" if kind in ("crash", "start") else "j"
        rows.append(Row(time, kind, "n1", job, queue="q", cause=cause))
    return Case("j", tuple(rows), frozenset(["n1"]), frozenset(), 1, "none")
