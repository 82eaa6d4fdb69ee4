import pytest

from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row
from tests.sim.mutants.mutant import all_mutants
from tests.sim.mutants.swapping import applied
from tests.sim.runs import plan
from tests.spec.validating import SWARM, Case, check, validate

CALM = plan(jobs=12, workers=(1, 3))
MUTANTS = ("all-but-one-holder-is-asked", "sync-answers-one-copy-early", "confirmed-by-one")


@pytest.mark.parametrize(
    "what", [CALM, expand(load(SWARM), 3)], ids=["a calm run", "a seed of the swarm"]
)
def test_each_event_of_a_run_is_a_step_of_the_specification(what: Plan) -> None:
    result = validate(what)

    assert result.jobs >= 12
    assert not result.findings, [str(each) for each in result.findings]


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


def _case(*events: str) -> Case:
    rows = [
        Row(-5, "start", "n1", cause="fresh"),
        Row(0, "hold", "n1", "j", cause="add", detail="retry=5 "),
    ]
    for time, event in enumerate(events, 1):
        kind, _, cause = event.partition(" ")
        rows.append(Row(time, kind, "n1", "j", cause=cause))
    return Case("j", tuple(rows), frozenset(["n1"]), frozenset(), 1, "none")
