"""Handlers that do harm when they run twice are found, and the others pass."""

from collections import Counter

import pytest

from disque_trio.testing.simulated import cluster as clusters
from disque_trio.testing.simulated.kit import Sim
from disque_trio.testing.simulated.recipes import RECIPES, TWICE, Recipe
from disque_trio.testing.simulated.search import NotIdempotentError
from tests.testing.bank import app, bank, charge, charge_once

NAMES = [each.name for each in (*RECIPES, TWICE)]


@pytest.mark.slow
def test_an_idempotent_handler_passes_all_recipes(disque_sim: Sim) -> None:
    report = disque_sim.idempotent(charge_once.call(42), app, state=bank)

    assert (report.task, report.steps, report.unmade) == ("charge_once", 4, [])
    assert report.tries == 9 * 4 - 2 + 3
    assert str(report) == "charge_once is idempotent: 4 steps, 37 tries"
    assert bank.charges == {}


@pytest.mark.sample(4)
@pytest.mark.parametrize("recipe", NAMES)
def test_each_recipe_finds_a_handler_that_is_not(recipe: str, disque_sim: Sim) -> None:
    with pytest.raises(NotIdempotentError) as raised:
        disque_sim.idempotent(charge.call(42), app, state=bank, recipes=[recipe])

    assert "\n  Bank.charges[42] is 2, not 1\n" in str(raised.value)
    assert "\n  came 2 times: Bank.charge(42)\n" in str(raised.value)


@pytest.mark.sample(3)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_each_recipe_makes_the_cause_that_it_names(
    recipe: Recipe, disque_sim: Sim, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: Counter[str] = Counter()
    monkeypatch.setattr(clusters, "check", lambda seen: found.update(seen.finish().duplicates))

    disque_sim.idempotent(charge_once.call(42), app, state=bank, recipes=[recipe.name])

    assert found[recipe.cause], found


def test_the_error_says_where_and_how_to_repeat_it(disque_sim: Sim) -> None:
    with pytest.raises(NotIdempotentError) as raised:
        disque_sim.idempotent(charge.call(42), app, state=bank, recipes=["killed"])

    first, *lines = str(raised.value).splitlines()
    assert first.startswith(
        "charge is not idempotent (seed 0, cause D0: the worker is killed, before step 2: "
        "testing/bank.py:"
    )
    assert [line for line in lines if line.endswith("is killed")]
    assert f"again: {disque_sim.again and 'pytest'} {disque_sim.again}" in "\n".join(lines)
    assert [line for line in lines if line.endswith("--disque-at killed:2")]
    assert len([line for line in lines if line.startswith("also: cause D0")]) == 2


def test_one_recipe_and_step_can_be_repeated(disque_sim: Sim) -> None:
    disque_sim.at = ("killed", 1)
    report = disque_sim.idempotent(charge.call(42), app, state=bank)
    assert report.tries == 1

    disque_sim.at = ("killed", 2)
    with pytest.raises(NotIdempotentError):
        disque_sim.idempotent(charge.call(42), app, state=bank)


@pytest.mark.slow
def test_a_snapshot_says_what_counts(disque_sim: Sim) -> None:
    disque_sim.idempotent(charge.call(42), app, state=bank, snapshot=lambda: sorted(bank.charges))


def test_an_unknown_recipe_is_a_mistake(disque_sim: Sim) -> None:
    with pytest.raises(ValueError, match="there is no recipe slain: there are killed, raised"):
        disque_sim.idempotent(charge.call(42), app, state=bank, recipes=["slain"])


def test_a_job_that_is_delivered_once_is_no_subject(disque_sim: Sim) -> None:
    with pytest.raises(ValueError, match="lease 0"):
        disque_sim.idempotent(charge.using(lease=0).call(42), app, state=bank)
