"""The mutants fit today's source, and whoever runs them tells the caught from the others."""

import importlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from tests.sim.ablations import conditions, upkeep
from tests.sim.mutants import __main__ as runner
from tests.sim.mutants import plans
from tests.sim.mutants.hunt import Catch, Hunt
from tests.sim.mutants.mutant import Mutant, StaleError, all_mutants

MUTANTS: Final = all_mutants()
everyone = pytest.mark.parametrize("name", MUTANTS)


@everyone
def test_a_mutant_fits_the_source_of_today(name: str) -> None:
    mutant = MUTANTS[name]

    compile(mutant.source(), mutant.file, "exec")

    assert mutant.old != mutant.new


@everyone
def test_a_mutant_says_what_is_wrong_and_where_it_shows_or_why_it_cannot(name: str) -> None:
    mutant = MUTANTS[name]
    shipped = {path.stem for path in conditions.SCENARIOS.glob("*.toml")}

    assert mutant.wrong.endswith(".")
    assert bool(mutant.equivalent) != bool(mutant.plans and mutant.finds)
    assert all(
        any(hasattr(each, plan) for each in (plans, conditions, upkeep)) or plan in shipped
        for plan in mutant.plans
    )


def test_there_are_as_many_as_were_asked_for() -> None:
    assert len(MUTANTS) >= 60


@pytest.mark.parametrize(
    "name",
    [
        "queues-of-consumers-left-out",
        "one-attempt-more",
        "short-waits-left-out",
        "snoozed-for-half-as-long",
        "complete-but-for-one",
        "lines-without-their-value",
    ],
)
def test_one_property_of_apps_alone_catches_it_at_its_first_seed(name: str) -> None:
    catch = Hunt(seeds=1).run(MUTANTS[name])

    assert tuple(catch.found) == catch.expected


@pytest.mark.parametrize(
    "name",
    [
        "all-but-one-holder-is-asked",
        "retry-counts-before-delay",
        "gotack-from-non-holders-is-ignored",
    ],
)
def test_the_judge_catches_it_within_two_seeds(name: str) -> None:
    catch = Hunt(seeds=2).run(MUTANTS[name])

    assert catch.outcome == "caught"
    assert set(catch.found) & set(MUTANTS[name].finds)


def test_a_mutant_whose_place_has_changed_is_stale() -> None:
    mutant = attrs.evolve(MUTANTS["maxlen-lets-one-more-in"], old="no such text")

    with pytest.raises(StaleError, match="stands 0 times in statemachine/commands"):
        mutant.source()


def test_a_mutant_cannot_be_put_where_the_intact_module_is_already() -> None:
    mutant = MUTANTS["maxlen-lets-one-more-in"]
    importlib.import_module(mutant.module)

    with pytest.raises(AssertionError, match="has been imported already"):
        mutant.install()


# What becomes of them.

_NAMED: Final = {"name": "late", "file": "a.py", "old": "1", "new": "2", "wrong": "It is late."}
LATE: Final = Mutant(**_NAMED, plans=("calm", "crowd"), finds=("S6",))
NONE: Final[tuple[int, ...]] = ()


@attrs.define
class Scripted(Hunt):
    """Seeds are not run: at these turns the mutant fails, and at those the intact node does."""

    failing: tuple[int, ...] = NONE
    failing_intact: tuple[int, ...] = NONE

    def trial(
        self, name: str, plans: Sequence[str], first: int, last: int
    ) -> Iterator[dict[str, Any]]:
        for turn in range(first, last):
            fails = turn in (self.failing if name else self.failing_intact)
            found = {"S6": "too early"} if fails else {}
            seed, at = divmod(turn, len(plans))
            yield {"turn": turn, "plan": plans[at], "seed": seed, "found": found, "cpu": 0.5}
            if fails:
                return


def test_a_mutant_is_caught_at_the_first_seed_that_only_the_intact_node_passes() -> None:
    catch = Scripted(10, failing=(1, 5), failing_intact=(1,)).run(LATE)

    assert catch.outcome == "caught"
    assert (catch.plan, catch.seed, catch.runs, catch.cpu) == ("crowd", 2, 6, 3.0)


def test_a_mutant_survives_all_its_seeds() -> None:
    catch = Scripted(10).run(LATE)

    assert (catch.outcome, catch.runs) == ("survived", 10)


def test_a_mutant_that_time_was_too_short_for_has_not_survived() -> None:
    assert Scripted(10, until=0.0, failing=(9,)).run(LATE).outcome != "survived"


def test_an_equivalent_mutant_is_not_run() -> None:
    mutant = attrs.evolve(LATE, plans=(), finds=(), equivalent="Both are one.")

    assert Scripted(10, failing=(0,)).run(mutant).outcome == "equivalent"


def test_an_intact_node_that_cannot_be_run_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="the intact node: its process has failed"):
        list(Hunt(1).trial("", ["no-such-plan"], 0, 1))


# The command.


def _call(monkeypatch: pytest.MonkeyPatch, hunt: type[Hunt], *words: str) -> int:
    monkeypatch.setattr(runner, "all_mutants", lambda: {"late": LATE})
    monkeypatch.setattr(runner, "Hunt", hunt)
    monkeypatch.setattr(sys, "argv", ["mutants", *words])
    return runner.main()


def test_survivors_fail_the_run_and_all_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "out.json"

    status = _call(monkeypatch, Scripted, "--seeds", "3", "--json", str(file))

    assert status == 1
    assert "survived late (3 seeds, 1.5 s)" in capsys.readouterr().out
    (row,) = json.loads(file.read_text())
    assert (row["mutant"], row["outcome"], row["runs"]) == ("late", "survived", 3)


def test_a_run_without_survivors_is_a_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Catching(Scripted):
        def run(self, mutant: Mutant) -> Catch:
            return Catch(mutant=mutant.name, plan="calm", found={"S6": "too early"}, runs=1)

    assert _call(monkeypatch, Catching) == 0
    assert "1 mutants: 1 caught" in capsys.readouterr().out


def test_an_unknown_name_is_a_mistake(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _call(monkeypatch, Scripted, "early*") == 2
    assert "no mutant is called early*" in capsys.readouterr().err
