"""`disque-trio sim sweep --guided`."""

import json
from pathlib import Path
from typing import Any

import pytest

from disque_trio.cli.frame import USAGE
from disque_trio.cli.sim import corpus, guiding, main
from disque_trio.cli.sim.outcomes import PASSED, VIOLATED
from disque_trio.cli.sim.pool import Play, Runner
from disque_trio.sim.guided.search import Search
from disque_trio.sim.scenarios.file import load
from tests.sim.cli.files import SMALL, Capture, scenario_file


@pytest.fixture(autouse=True)
def _three_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute would be long: the time ends with the third batch."""
    end_batch = guiding.Curve.end_batch

    def counted(self: guiding.Curve, elements: int) -> None:
        end_batch(self, elements)
        self.seconds = 0.0 if len(self.points) < 3 else 1e6

    monkeypatch.setattr(guiding.Curve, "end_batch", counted)


def sweep(*words: str) -> int:
    return main(["sweep", "--guided", "--jobs", "1", *words])


def state(folder: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((folder / corpus.FILE).read_text("utf-8"))
    return facts


@pytest.mark.slow
def test_plans_that_show_something_new_are_kept_as_files(
    small: str, tmp_path: Path, capsys: Capture
) -> None:
    folder = tmp_path / "corpus"

    assert sweep(small, "--corpus", str(folder), "--json") == PASSED

    said, kept = json.loads(capsys.readouterr().out), state(folder)
    files = sorted(path.name for path in (folder / corpus.PLANS).iterdir())
    assert said["guided"]["runs"] == kept["next"] == 3 * guiding.BATCH
    assert said["guided"]["signatures"] == len(kept["elements"]) > 10
    assert sorted(each["file"] for each in kept["kept"]) == files
    assert main(["run", str(folder / corpus.PLANS / files[-1])]) == PASSED


@pytest.mark.slow
def test_the_same_seed_gives_the_same_corpus_and_another_one_another(
    small: str, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in "abc"]
    for folder, seed in zip(folders, "112", strict=True):
        assert sweep(small, "--corpus", str(folder), "--seed", seed) == PASSED

    one, other, third = map(state, folders)
    assert one == other != third


@pytest.mark.slow
def test_a_sweep_goes_on_as_if_it_had_not_been_interrupted(small: str, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    for _ in range(2):
        assert sweep(small, "--corpus", str(folder)) == PASSED

    search = Search({"small": load(small)}, 0)
    again = state(folder)
    assert again["next"] == 6 * guiding.BATCH
    with Runner(1) as run:
        for start in range(0, again["next"], guiding.BATCH):
            candidates = search.candidates(start, guiding.BATCH)
            plays = [Play(each.plan, "heap", 60) for each in candidates]
            for each, played in zip(candidates, run.all(plays), strict=True):
                search.tell(each, played.signature, played.result.steps)
    assert [each.number for each in search.kept] == [each["number"] for each in again["kept"]]
    assert list(search.counts) == again["elements"]


@pytest.mark.slow
def test_plans_that_other_code_has_kept_are_run_again_first(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "corpus"
    assert sweep(small, "--corpus", str(folder)) == PASSED
    before = state(folder)
    monkeypatch.setattr(guiding, "code_digest", lambda: "other code")

    assert sweep(small, "--corpus", str(folder)) == PASSED

    after = state(folder)
    assert after["first"] == [each["file"] for each in before["kept"]]
    assert (after["code"], after["round"]) == ("other code", 1)
    assert set(before["elements"]) <= set(after["elements"])


@pytest.mark.slow
def test_blind_seeds_may_have_the_same_time(small: str, tmp_path: Path, capsys: Capture) -> None:
    folder = str(tmp_path / "corpus")
    assert sweep(small, "--corpus", folder, "--compare", "--json") == PASSED

    said = json.loads(capsys.readouterr().out)
    assert said["blind"]["runs"] == said["guided"]["runs"] == 3 * guiding.BATCH
    assert said["blind"]["signatures"] > 10

    assert sweep(small, "--corpus", folder, "--compare") == USAGE
    assert "--compare needs a new corpus" in capsys.readouterr().err


@pytest.mark.slow
def test_a_violation_is_a_plan_that_can_be_run(again: str, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "corpus"

    assert sweep(again, "--corpus", str(folder), "--max-failures", "1") == VIOLATED

    said = capsys.readouterr()
    plan = next((folder / corpus.FAILURES).iterdir())
    assert str(plan.parent) in said.err
    assert "signatures" in said.out
    assert main(["run", str(plan)]) == VIOLATED


@pytest.mark.slow
def test_several_processes_give_the_same_corpus(small: str, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert sweep(small, "--corpus", str(one)) == PASSED
    words = ["sweep", "--guided", small, "--corpus", str(two), "--jobs", "2"]
    assert main(words) == PASSED

    assert state(one) == state(two)


@pytest.mark.slow
def test_a_wrong_corpus_is_refused(small: str, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "corpus"
    assert sweep(small, "--corpus", str(folder)) == PASSED
    other = scenario_file(tmp_path, "other", SMALL.replace("rate = 2", "rate = 3"))
    for words, why in (
        ((other, "--corpus", str(folder)), "is a corpus for other scenarios"),
        ((small, "--corpus", str(folder), "--seed", "5"), "is a corpus for other seed"),
    ):
        capsys.readouterr()
        assert sweep(*words) == USAGE
        assert why in capsys.readouterr().err
    (folder / corpus.FILE).write_text("{", "utf-8")
    assert sweep(small, "--corpus", str(folder)) == USAGE
    assert "is damaged" in capsys.readouterr().err
    (folder / corpus.FILE).unlink()
    assert sweep(small, "--corpus", str(folder)) == USAGE
    assert "is not a corpus" in capsys.readouterr().err
    assert sweep(small, "--corpus", small) == USAGE
    assert "cannot use the corpus" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--guided"], "--guided needs --corpus"),
        (["--corpus", "somewhere"], "--corpus is for --guided"),
        (["--minutes", "3"], "--minutes is for --guided"),
        (["--guided", "--corpus", "c", "--seeds", "0:9"], "--seeds is not for --guided"),
        (["--guided", "--corpus", "c", "--out", "o"], "--out is not for --guided"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    small: str, words: list[str], why: str, capsys: Capture
) -> None:
    assert main(["sweep", small, *words]) == USAGE
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("name", ["apps", "w-minus-one-control"])
def test_scenarios_that_cannot_be_changed_are_refused(
    name: str, tmp_path: Path, capsys: Capture
) -> None:
    assert sweep(f"scenarios/{name}.toml", "--corpus", str(tmp_path / "corpus")) == USAGE
    assert "--guided is for other scenarios" in capsys.readouterr().err
