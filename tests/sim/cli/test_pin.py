"""`disque-trio sim pin`, and runs of several plans."""

import json
from pathlib import Path

import pytest

from disque_trio.cli.frame import USAGE
from disque_trio.cli.sim import main
from disque_trio.cli.sim.outcomes import PASSED, VIOLATED
from tests.sim.cli.files import Capture


def test_a_seed_is_pinned_beside_its_scenario(small: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["pin", small, "--seed", "5", "--note", "it was slow"]) == PASSED

    target = tmp_path / "pins" / "small-5.json"
    out = capsys.readouterr().out
    assert f"pinned in {target}" in out
    assert f"again with: disque-trio sim run {target}" in out
    assert json.loads(target.read_text())["note"] == "it was slow"


def test_a_pin_runs_like_its_seed(small: str, tmp_path: Path, capsys: Capture) -> None:
    pinned = str(tmp_path / "x.json")
    main(["run", small, "--seed", "5", "--json"])
    by_seed = json.loads(capsys.readouterr().out)

    main(["pin", small, "--seed", "5", "--note", "it was slow", "-o", pinned])
    capsys.readouterr()
    main(["run", pinned, "--json"])

    assert json.loads(capsys.readouterr().out)["digest"] == by_seed["digest"]


def test_a_failure_is_pinned_before_it_is_mended(
    again: str, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["pin", again, "--note", "jobs come again"]) == PASSED

    assert "violated D" in capsys.readouterr().out
    assert main(["run", str(tmp_path / "pins" / "again-0.json")]) == VIOLATED


def test_a_pin_of_a_plan_stays_in_its_folder(small: str, tmp_path: Path, capsys: Capture) -> None:
    main(["pin", small, "--note", "one"])
    target = tmp_path / "pins" / "small-0.json"

    main(["pin", str(target), "--note", "another"])

    assert json.loads(target.read_text())["note"] == "another"
    assert str(target) in capsys.readouterr().out


@pytest.mark.parametrize("note", ["", "  "])
def test_a_pin_says_what_it_has_found(small: str, note: str, capsys: Capture) -> None:
    assert main(["pin", small, "--note", note]) == USAGE

    assert "--note is empty" in capsys.readouterr().err


def test_several_plans_run_one_after_the_other(small: str, again: str, capsys: Capture) -> None:
    assert main(["run", small, again]) == VIOLATED
    out = capsys.readouterr().out
    assert "small seed 0" in out
    assert "again seed 0" in out
    assert main(["run", small, small, "--json"]) == PASSED
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_picture_is_of_one_run(small: str, again: str, capsys: Capture) -> None:
    assert main(["run", small, again, "--html", "x.html"]) == USAGE

    assert "name one file" in capsys.readouterr().err
