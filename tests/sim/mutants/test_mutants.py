"""The hand-made mutants fit today's source, and the judge catches those that are cheap."""

from typing import Any, Final

import pytest

from disque_trio.cli.sim.pool import cycles_collected_between_seeds
from disque_trio.sim.checkers.properties import PROPERTIES
from tests.sim.mutants import listing, plans, seeds
from tests.sim.mutants.mutant import Mutant, StaleError, all_mutants
from tests.sim.mutants.swapping import applied

MUTANTS: Final = all_mutants()
CHEAP: Final = [name for name, each in MUTANTS.items() if each.shows]
SAMPLED: Final = 120
"""Of so many mutants `make test` runs one."""
HOW: Final = "write it anew: python -m tests.sim.mutants.listing"


def _plans() -> dict[str, int]:
    """How many seeds of each, but for shipped scenarios and pins, which have tests of their own."""
    found: dict[str, int] = {}
    for name in CHEAP:
        for plan in MUTANTS[name].plans:
            if plans.is_here(plan):
                found[plan] = max(found.get(plan, 0), MUTANTS[name].seeds)
    return found


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_fits_the_source_of_today_and_says_where_it_shows_or_why_it_cannot(
    name: str,
) -> None:
    mutant = MUTANTS[name]

    source = mutant.source()

    compile(source, mutant.file, "exec")
    assert source != mutant.path.read_text("utf-8")
    assert mutant.wrong.endswith(".")
    assert sum(map(bool, (mutant.equivalent, mutant.costs, mutant.finds, mutant.shows))) == 1
    assert bool(mutant.plans) != bool(mutant.equivalent)
    assert all(callable(plans.called(plan)) for plan in mutant.plans)


@pytest.mark.sample(SAMPLED)
@pytest.mark.parametrize("plan", _plans())
def test_the_intact_node_passes(plan: str) -> None:
    for seed in range(_plans()[plan]):
        assert seeds.findings(seeds.judged(plans.called(plan)(seed))) == {}, seed


@pytest.mark.sample(SAMPLED)
@pytest.mark.parametrize("name", CHEAP)
def test_the_judge_finds_what_is_wrong(name: str) -> None:
    mutant = MUTANTS[name]
    missing, found = set(mutant.shows), dict[str, str]()

    # The exception that ends a run that hangs would be lost in a callback of the collector.
    with applied(mutant), cycles_collected_between_seeds():
        for turn in range(mutant.seeds):
            seed, at = divmod(turn, len(mutant.plans))
            found |= seeds.findings(seeds.judged(plans.called(mutant.plans[at])(seed)))
            if missing <= found.keys():
                return

    pytest.fail(f"found {found} in {mutant.seeds} seeds, not {' '.join(mutant.shows)}")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, each in MUTANTS.items() if each.costs])
def test_what_breaks_no_promise_costs_something(name: str) -> None:
    mutant = MUTANTS[name]
    intact = seeds.figure(mutant.costs, mutant.plans, 2)

    with applied(mutant):
        assert seeds.figure(mutant.costs, mutant.plans, 2) > intact


def test_every_property_is_shown_to_fail() -> None:
    assert [
        name
        for name in PROPERTIES
        if not any(listing.shows(each, name) for each in MUTANTS.values())
    ] == []


def test_the_page_says_by_what() -> None:
    text = listing.PAGE.read_text("utf-8")

    assert text == listing.page(text), HOW


def _mutant(**fields: Any) -> Mutant:
    return Mutant(name="one", file="statemachine/acks.py", wrong="It is wrong.", **fields)


def test_a_mutant_whose_text_has_changed_is_stale() -> None:
    with pytest.raises(StaleError, match="its old text is 0 times in statemachine/acks"):
        _mutant(old="no such text", new="").source()


def test_a_mutant_whose_function_has_gone_is_stale() -> None:
    with pytest.raises(StaleError, match="one: gone is 0 times in statemachine/acks"):
        _mutant(at="gone", first="return").source()


def test_statements_go_behind_the_docstring_of_a_function() -> None:
    source = _mutant(at="fast_ack", first="first()\nsecond()").source()

    assert "first()\n    second()\n    job = node.jobs.get(job_id)" in source
