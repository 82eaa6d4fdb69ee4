from collections.abc import Iterator

import pytest

from disque_trio.statemachine import job_states
from disque_trio.statemachine.base import ACKED, ACTIVE, DEAD, QUEUED, WAIT_REPL
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.job_states import TRANSITIONS
from disque_trio.statemachine.messages import MESSAGES
from tests.spec.evaluating import Specification, explore
from tests.spec.models import broken, model, models, parsed
from tests.spec.parsing import parse
from tests.spec.validating import table

QUICK = 4000
"""States."""
STATES = {
    "absent": job_states.ABSENT,
    "waits": WAIT_REPL,
    "active": ACTIVE,
    "queued": QUEUED,
    "acked": ACKED,
    "dummy": ACKED,
    "dead": DEAD,
}
UNSEEN = ("postpone", "untie")
"""Kinds of events that change no state of a job."""
IN_ONE = {(QUEUED, ACKED), (QUEUED, DEAD), (QUEUED, job_states.ABSENT)}
"""One step of the specification; the code takes the job out of its queue first."""
IN_TWO = {(job_states.ABSENT, QUEUED), (job_states.ABSENT, DEAD)}
"""A short path of the code; several steps of the specification."""
EVERYTHING = frozenset(
    ["requeue", "fail", "move", "dequeue", "dummy", "fastack", "expire", "dead", "outside"]
)


def test_the_model_of_adding_is_complete_and_its_promises_hold() -> None:
    adding = model("Job-adding")

    found = explore(adding.of(parsed("Job")), adding.invariants)

    assert not found.broken
    assert (found.states, found.depth) == (2606, 23)  # as TLC counts them


def test_each_model_has_all_constants_and_its_first_states_are_sound() -> None:
    for each in models():
        module = parsed(each.module)
        assert set(module.constants) == set(each.constants), each.name
        found = explore(each.of(module), each.invariants, 300)
        assert found.states >= 300
        assert not found.broken, each.name


def test_each_mistake_in_the_specification_is_refuted() -> None:
    for mistake in broken():
        judge = model(mistake.model)
        found = explore(judge.of(parse(mistake.text())), judge.invariants, QUICK)
        assert found.broken == mistake.breaks, mistake.name


@pytest.mark.slow
def test_the_ways_between_states_are_those_of_the_code() -> None:
    base = model("Job-crash")
    constants = {**base.constants, "Also": EVERYTHING, "MaxCrashes": 0, "Need": 1}
    specification = Specification(parsed("Job"), constants)
    ways = {
        (STATES[before], STATES[after])
        for one in _steps(specification, 3000)
        for before, after in one
        if STATES[before] != STATES[after]
    }

    assert ways - IN_ONE == {(each.before, each.after) for each in TRANSITIONS} - IN_TWO
    assert ways >= IN_ONE


def _steps(specification: Specification, most: int) -> Iterator[list[tuple[str, str]]]:
    """The states of each node before and after each of the first steps."""
    names = specification.module.variables
    waiting = list(specification.beginnings())
    seen: set[tuple[object, ...]] = set()
    for state in waiting:
        for after in specification.steps("Next", state):
            yield [(state["st"][node], after["st"][node]) for node in state["st"]]
            key = tuple([after[name] for name in names])
            if key not in seen and len(seen) < most:
                seen.add(key)
                waiting.append(after)


def test_each_event_of_a_job_is_in_the_specification() -> None:
    told = {each.partition(" ")[0] for each in (*table().rows, *table().halves)}
    causes = {each.partition(" ")[2] for each in (*table().rows, *table().halves)}

    assert told == {*Kind, "crash", "start", "forget"} - set(UNSEEN)
    assert causes <= {*Cause, ""}
    assert {*table().sends, *table().reads} <= set(MESSAGES)


def test_each_action_with_an_event_is_one_that_the_models_take() -> None:
    job = parsed("Job")
    taken = str([job.definitions[name].body for name in ("Next", "Alone", "Paired")])
    parts = (table().rows, table().sends, table().reads)
    named = {name for part in parts for names in part.values() for name in names}

    assert all(f"'{name}'" in taken for name in named)
