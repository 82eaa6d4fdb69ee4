"""`disque-trio sim explore`."""

import json
from pathlib import Path

import pytest

from disque_trio.cli.frame import USAGE
from disque_trio.cli.sim import main
from disque_trio.cli.sim.outcomes import PASSED, VIOLATED
from tests.sim.cli.files import Capture
from tests.sim.mutants.mutant import all_mutants
from tests.sim.mutants.swapping import applied

BOUNDS = ["--faults", "0", "--late", "0"]


def test_a_complete_scope_says_so(capsys: Capture) -> None:
    assert main(["explore", "once", *BOUNDS]) == PASSED

    assert "once complete: " in capsys.readouterr().out


def test_a_scope_that_stops_says_how_far_it_came(capsys: Capture) -> None:
    assert main(["explore", "once", *BOUNDS, "--states", "4", "--json"]) == PASSED

    said = json.loads(capsys.readouterr().out)
    assert (said["stopped"], said["worlds"], said["complete"]) == ("4 states", 4, False)


def test_a_violation_is_written_as_steps_that_can_be_played(
    tmp_path: Path, capsys: Capture
) -> None:
    target, page = str(tmp_path / "steps.json"), str(tmp_path / "steps.html")
    with applied(all_mutants()["holders-listed-twice"]):
        assert main(["explore", "collection", *BOUNDS, "-o", target]) == VIOLATED
        found = capsys.readouterr().out
        assert main(["explore", "--replay", target, "--html", page]) == VIOLATED

    played = capsys.readouterr().out
    assert "collection violated: b: AssertionError" in found
    assert f"disque-trio sim explore --replay {target}" in found
    assert "a > b  repljob" in played
    assert "explore collection" in Path(page).read_text("utf-8")


def test_scopes_are_listed(capsys: Capture) -> None:
    assert main(["explore", "--list"]) == PASSED

    assert "requeue" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["nowhere"], ["--replay", "nowhere.json"]])
def test_what_is_not_there_is_refused(words: list[str], capsys: Capture) -> None:
    assert main(["explore", *words]) == USAGE
    assert "nowhere" in capsys.readouterr().err
