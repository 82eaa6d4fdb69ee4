"""Mutants are run until a seed is not passed that the intact node passes, and what is known is
kept."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from tests.sim.mutants import __main__ as runner
from tests.sim.mutants import kept, operators, plans, scores
from tests.sim.mutants.hunt import Catch, Hunt, Swarm
from tests.sim.mutants.kept import Kept
from tests.sim.mutants.mutant import HERE, PACKAGE, Mutant, all_mutants
from tests.sim.mutants.operators import Drawn, draw
from tests.sim.mutants.scores import Survivor
from tests.sim.mutants.trial import Trial

ACKS: Final = PACKAGE / "statemachine" / "acks.py"
LATE: Final = Mutant(
    name="late",
    file="statemachine/acks.py",
    at="ack",
    first="return True",
    wrong="It is late.",
    plans=("calm", "crowd"),
    finds=("S6",),
)
DRAWN: Final = draw(1, 0, [ACKS])[0]
NONE: Final[tuple[int, ...]] = ()


@attrs.define
class Scripted(Hunt):
    """Seeds are not run: at these turns the mutant fails, and at those the intact node does."""

    failing: tuple[int, ...] = NONE
    failing_intact: tuple[int, ...] = NONE
    status: int = 0
    trials: list[Trial] = attrs.Factory(list)

    def trial(self, trial: Trial) -> Iterator[dict[str, Any]]:
        self.trials.append(trial)
        for turn in trial.turns:
            fails = turn in (self.failing if trial.file else self.failing_intact)
            found = {"S6": "too early"} if fails else {}
            seed, at = divmod(turn, len(trial.plans))
            plan = trial.plans[at]
            yield {"turn": turn, "plan": plan, "seed": seed, "found": found, "cpu": 0.5}
            if fails and turn not in trial.goes_on:
                break
        yield {"ended": self.status}


def swarm(**fields: Any) -> Swarm:
    at = DRAWN.file, DRAWN.statement
    base = {"scenario": "swarm", "engine": "heap", "failing": (), "cpu": (1.0,) * 9}
    return Swarm(**base | {"reached": {at: (1, 3, 4)}} | fields)


def test_a_mutant_is_caught_at_the_first_seed_that_only_the_intact_node_passes() -> None:
    catch = Scripted(10, failing=(1, 5), failing_intact=(1,)).run(LATE)

    assert catch.outcome == "caught"
    assert (catch.plan, catch.seed) == ("crowd", 2)


def test_a_mutant_survives_all_its_seeds() -> None:
    catch = Scripted(10).run(LATE)

    assert (catch.outcome, catch.runs) == ("survived", 10)


def test_a_mutant_that_time_was_too_short_for_has_not_survived() -> None:
    assert Scripted(10, until=0.0, failing=(9,)).run(LATE).outcome == "not finished"


def test_a_mutant_that_has_had_its_processor_time_has_survived_the_seeds_that_ran() -> None:
    catch = Scripted(10, budget=1.0, failing=(9,)).run(LATE)

    assert (catch.outcome, catch.runs, catch.cpu) == ("survived", 2, 1.0)


def test_a_mutant_that_ends_its_process_is_caught() -> None:
    assert Scripted(10, status=9).run(LATE).found == {"died": "status 9"}


def test_an_equivalent_mutant_is_not_run() -> None:
    mutant = attrs.evolve(LATE, plans=(), finds=(), equivalent="Both are one.")

    assert Scripted(10, failing=(0,)).run(mutant).outcome == "equivalent"


def test_a_drawn_mutant_is_tried_in_seeds_that_come_to_its_place_and_pass() -> None:
    hunt = Scripted(10, failing=(4,))

    catch = hunt.try_drawn(DRAWN, swarm(failing=(3,)))

    assert (catch.outcome, catch.seed, catch.runs) == ("caught", 4, 2)
    assert hunt.trials[0].turns == (1, 4)


def test_a_drawn_mutant_that_no_seed_comes_to_is_not_run() -> None:
    hunt = Scripted(10)

    assert hunt.try_drawn(DRAWN, swarm(reached={})).outcome == "not reached"
    assert hunt.trials == []


# In processes.


@pytest.fixture
def hunt() -> Iterator[Hunt]:
    made = Hunt(1)
    yield made
    made.stop()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gotack-from-non-holders-is-ignored", "unbegun-counts"])
def test_a_process_catches_it_whether_a_function_or_a_constant_is_wrong(
    hunt: Hunt, name: str
) -> None:
    mutant = all_mutants()[name]

    hunt.seeds = 2
    catch = hunt.run(mutant)

    assert set(catch.found) & set(mutant.finds + mutant.shows)


@pytest.mark.slow
def test_a_seed_of_a_drawn_mutant_ends_at_its_first_violation(hunt: Hunt) -> None:
    mutant = all_mutants()["gotack-from-non-holders-is-ignored"]
    whole = Trial(file=mutant.file, source=mutant.source(), plans=mutant.plans[:1], turns=(0, 1))

    (*_, some), (*_, one) = (
        [each for each in hunt.trial(trial) if each.get("found")]
        for trial in (whole, attrs.evolve(whole, stops=True))
    )

    assert len(one["found"]) == 1
    assert one["found"].items() <= some["found"].items()


@pytest.mark.slow
def test_an_intact_node_that_cannot_be_run_is_an_error(hunt: Hunt) -> None:
    with pytest.raises(RuntimeError, match="the intact node cannot run no-such-plan"):
        list(hunt.look("no-such-plan", "heap", (0,)))


@pytest.mark.slow
def test_a_seed_tells_which_statements_it_comes_to(hunt: Hunt, tmp_path: Path) -> None:
    (found,) = Kept(tmp_path / "state.jsonl").swarm(hunt, "calm", "heap")

    assert found.failing == ()
    files = {file for file, _ in found.reached}
    assert "statemachine/acks.py" in files
    assert "statemachine/repair.py" in files
    assert "storage/append.py" not in files


# What is kept.


def test_what_is_known_is_not_run_again_but_with_another_judge(tmp_path: Path) -> None:
    path = tmp_path / "build" / "state.jsonl"
    catch = Catch(mutant="late", found={"S6": "too early"}, expected=("S6",), runs=3)
    Kept(path).keep("late 10", catch)
    Kept(path).keep("slow 10", Catch(mutant="slow", is_cut_short=True))
    Kept(path).keep("off 10", Catch(mutant="off", is_reached=False))
    path.write_text(path.read_text() + '{"digest": "cut sho')

    assert Kept(path).catch("late 10") == catch
    assert Kept(path, seeds="another version").catch("late 10") == catch
    assert Kept(path).catch("slow 10") is None
    assert Kept(path).catch("off 10") is None
    assert Kept(path, trials="another judge").catch("late 10") is None


def test_seeds_of_the_intact_node_are_looked_at_again_in_another_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Looking(Scripted):
        def look(self, _: str, __: str, seeds: tuple[int, ...]) -> Iterator[dict[str, Any]]:
            for seed in seeds:
                looked.append(seed)
                yield {"found": {}, "cpu": 1.0, "reach": "0x5"}

    looked: list[int] = []
    path, hunt = tmp_path / "state.jsonl", Looking(2)
    monkeypatch.setattr(kept, "places", lambda: [("a.py", 1), ("a.py", 2)])

    for digests in ({}, {}, {"trials": "b"}, {"seeds": "b"}):
        *_, found = Kept(path, **digests).swarm(hunt, "calm", "heap")
        assert found.reached == {("a.py", 2): (0, 1)}

    assert looked == [0, 1, 0, 1]


ROOT: Final = PACKAGE.parent


@pytest.mark.parametrize(
    ("path", "is_of_seeds", "is_of_trials"),
    [
        (ACKS, True, False),
        (PACKAGE / "sim" / "checkers" / "safety.py", True, True),
        (PACKAGE / "cli" / "sim" / "execution.py", True, True),
        (ROOT / "scenarios" / "everything.toml", True, True),
        (HERE / "plans" / "upkeep.py", True, True),
        (HERE / "operators.py", True, True),
        (HERE / "seeds.py", False, True),
        (HERE / "trial.py", False, True),
        (HERE / "made" / "acks.toml", False, False),
    ],
    ids=lambda each: each.stem if isinstance(each, Path) else "",
)
def test_what_is_known_depends_on_these_files(
    monkeypatch: pytest.MonkeyPatch, path: Path, *, is_of_seeds: bool, is_of_trials: bool
) -> None:
    read = Path.read_bytes
    seeds, trials = kept.digest_of_seeds(), kept.digest_of_trials()

    monkeypatch.setattr(Path, "read_bytes", lambda each: read(each) + b"\n" * (each == path))

    assert (kept.digest_of_seeds() != seeds) == is_of_seeds
    assert (kept.digest_of_trials() != trials) == is_of_trials


def test_an_edited_mutant_is_another_one() -> None:
    mutants: list[Mutant | Drawn] = [
        LATE,
        attrs.evolve(LATE, first="return False"),
        attrs.evolve(LATE, plans=("calm",)),
        DRAWN,
    ]

    keys = {kept.key(each, 10) for each in mutants}

    assert len(keys) == 4
    assert kept.key(attrs.evolve(LATE), 10) in keys
    assert kept.key(LATE, 11) not in keys


@pytest.mark.parametrize("mutant", [LATE, DRAWN])
def test_a_mutant_is_another_one_if_its_module_changes(
    monkeypatch: pytest.MonkeyPatch, mutant: Mutant | Drawn
) -> None:
    before = kept.key(mutant, 10)
    read = Path.read_text

    monkeypatch.setattr(type(mutant), "source", lambda self: read(self.path) + "\nCHANGED = 1\n")

    assert kept.key(mutant, 10) != before


def test_a_pin_is_part_of_the_mutants_that_name_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pin = tmp_path / "calm.json"
    monkeypatch.setattr(plans, "pin", lambda name: tmp_path / f"{name}.json")
    keys = [kept.key(LATE, 10)]

    for text in ("{}", "[]"):
        pin.write_text(text)
        keys.append(kept.key(LATE, 10))

    assert len(set(keys)) == 3


# The command.


def _call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hunt: type[Hunt], *words: str) -> int:
    monkeypatch.setattr(runner, "all_mutants", lambda: {"late": LATE})
    monkeypatch.setattr(runner, "Hunt", hunt)
    state = str(tmp_path / "state.jsonl")
    monkeypatch.setattr(sys, "argv", ["mutants", "--state", state, *words])
    return runner.main()


def test_survivors_fail_the_run_and_all_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "out.json"

    status = _call(monkeypatch, tmp_path, Scripted, "--seeds", "3", "--json", str(file))

    assert status == 1
    assert "survived late (3 seeds, 1.5 s)" in capsys.readouterr().out
    (row,) = json.loads(file.read_text())
    assert (row["mutant"], row["outcome"], row["runs"]) == ("late", "survived", 3)


def test_a_run_without_survivors_is_a_success_and_the_next_one_runs_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    class Catching(Scripted):
        def run(self, mutant: Mutant) -> Catch:
            return Catch(mutant=mutant.name, plan="calm", found={"S6": "too early"}, runs=1)

    class Failing(Scripted):
        def run(self, mutant: Mutant) -> Catch:
            raise AssertionError(mutant)

    assert _call(monkeypatch, tmp_path, Catching) == 0
    assert _call(monkeypatch, tmp_path, Failing) == 0
    assert "1 mutants: 1 caught" in capsys.readouterr().out


def test_drawn_mutants_are_scored(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def looks(_kept: Kept, _hunt: Hunt, _scenario: str, _engine: str) -> Iterator[Swarm]:
        yield swarm()

    monkeypatch.setattr(Kept, "swarm", looks)
    monkeypatch.setattr(runner, "draw", lambda *_: [DRAWN])

    assert _call(monkeypatch, tmp_path, Scripted, "--drawn", "1", "--seeds", "9") == 1

    told = capsys.readouterr().out
    assert f"survived {DRAWN.name} (3 seeds" in told
    assert "+++ disque_trio/statemachine/acks.py" in told
    assert "statemachine  1      0" in told


def test_an_unknown_name_is_a_mistake(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert _call(monkeypatch, tmp_path, Scripted, "early*") == 2
    assert "no mutant is called early*" in capsys.readouterr().err


# Scores.


def test_equivalent_mutants_do_not_count() -> None:
    caught = [
        Catch(mutant="wire/a:f:drop:1", found={"S1": "lost"}),
        Catch(mutant="wire/a:f:drop:2"),
        Catch(mutant="wire/a:f:drop:3"),
        Catch(mutant="driver/b:f:drop:1", is_reached=False),
    ]
    caught.append(Catch(mutant="driver/b:f:drop:2", is_cut_short=True))
    known = {"wire/a:f:drop:2": Survivor(kind="equivalent", line="f()", why="Both are one.")}

    assert scores.score(caught, known) == {
        "driver": dict(zip(scores.COLUMNS, (1, 0, 0, 0, 0, 1, 0), strict=True)),
        "wire": dict(zip(scores.COLUMNS, (3, 1, 1, 0, 0, 0, 1), strict=True)),
    }


@pytest.mark.parametrize(("name", "row"), scores.survivors().items())
def test_a_survivor_is_a_mutant_of_today_and_says_why(name: str, row: Survivor) -> None:
    mutant = operators.named(name)

    assert mutant is not None
    assert mutant.text_of_line == row.line
    assert row.kind in scores.KINDS
    assert row.why.endswith(".")
