"""`disque-trio sim run`, and what all of its commands have in common."""

import json
import re
from pathlib import Path

import pytest

from disque_trio.cli.frame import USAGE
from disque_trio.cli.sim import main
from disque_trio.cli.sim.outcomes import NOTHING_TESTED, PASSED, VIOLATED
from tests.sim.cli.files import SMALL, Capture, scenario_file


def test_a_run_that_passes_tells_its_digest(small: str, capsys: Capture) -> None:
    assert main(["run", small, "--seed", "5"]) == PASSED

    out = capsys.readouterr().out
    assert "small seed 5, heap" in out
    assert "passed  digest " in out


def test_two_runs_of_a_seed_are_the_same(small: str, capsys: Capture) -> None:
    main(["run", small, "--seed", "5", "--json"])
    first = json.loads(capsys.readouterr().out)
    main(["run", small, "--seed", "5", "--json"])
    second = json.loads(capsys.readouterr().out)

    assert first["digest"] == second["digest"]
    assert first["is_ok"] is True
    assert first["delivered"] > 0
    assert first["replay"] == f"disque-trio sim run {small} --seed 5"


def test_a_failure_tells_property_seed_command_and_last_events(again: str, capsys: Capture) -> None:
    assert main(["run", again, "--seed", "3"]) == VIOLATED

    out = capsys.readouterr().out
    assert "violated D1 at" in out
    assert "(D1); expect.duplicates of again does not have D1" in out
    assert f"seed 3, again with: disque-trio sim run {again} --seed 3" in out
    assert re.search(r"^    t= .* deliver .*\[[.hQx]{2}\]  delivery 2: D1$", out, re.MULTILINE)
    assert "the last events of job D-" in out
    assert out.rstrip().splitlines()[-1].split()[2] == "get.deliver"


def test_a_run_names_the_marks_that_it_has_not_hit(tmp_path: Path, capsys: Capture) -> None:
    text = SMALL + '[expect]\nsometimes = ["crash", "collected", "leave"]\n'
    path = scenario_file(tmp_path, "small", text)

    assert main(["run", path]) == PASSED
    assert "not hit, although some seed must: crash, leave" in capsys.readouterr().out
    main(["run", path, "--json"])

    assert json.loads(capsys.readouterr().out)["not_seen"] == ["crash", "leave"]


@pytest.mark.parametrize("kind", ["jsonl", "arrow"])
def test_a_trace_that_finds_the_disk_full_is_no_failure_of_a_node(
    small: str, tmp_path: Path, capsys: Capture, kind: str
) -> None:
    target = tmp_path / f"full.{kind}"
    target.symlink_to("/dev/full")

    assert main(["run", small, "--trace", str(target)]) == USAGE

    assert f"cannot write {target}: No space left on device" in capsys.readouterr().err


def test_a_run_in_which_nothing_is_delivered_tests_nothing(tmp_path: Path, capsys: Capture) -> None:
    path = scenario_file(tmp_path, "idle", 'schema = 1\nname = "idle"\n[end]\nchaos = "1s"\n')

    assert main(["run", path]) == NOTHING_TESTED

    assert "nothing tested: no job was delivered" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "the following arguments are required: FILE"),
        (["run", "gone.toml"], "cannot read gone.toml: No such file or directory"),
        (["run", "gone.txt"], "gone.txt is neither a scenario (.toml) nor a plan (.json)"),
        (["run", "gone.json"], "cannot read gone.json: No such file or directory"),
        (["run", "gone.json", "--seed", "1"], "gone.json has its own seed: omit --seed"),
        (["run", "x.toml", "--seed", "-1"], "'-1' is not a whole number, 0 or more"),
        (["run", "x.toml", "--seed", "many"], "'many' is not a whole number, 0 or more"),
        (["run", "x.toml", "--engine", "steam"], "'steam' is not one of heap, trio, tcp"),
        (["sweep", "x.toml", "--seeds", "5:5"], "'5:5' is not a range of seeds"),
        (["sweep", "x.toml", "--seeds", "a:b"], "'a:b' is not a range of seeds, such as 0:1000"),
        (["sweep", "x.toml", "--jobs", "0"], "'0' is not a whole number, 1 or more"),
        (["sweep", "x.toml", "--recheck", "2"], "'2' is not a share from 0 to 1"),
        (["sweep", "x.json"], "x.json is not a scenario: its name does not end in .toml"),
        (["replay", "x.jsonl"], "cannot read x.jsonl: No such file or directory"),
        (["replay", "x.json", "y.json"], "give one plan"),
        (["draw", "x.jsonl", "--seed", "1"], "x.jsonl has its own seed: omit --seed"),
        (["dance"], "invalid choice: 'dance'"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_what_cannot_be_done_is_told(
    arguments: list[str], message: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)

    assert main(arguments) == USAGE

    assert message in capsys.readouterr().err


def test_a_bad_scenario_is_told_with_file_and_line(tmp_path: Path, capsys: Capture) -> None:
    path = scenario_file(tmp_path, "bad", 'schema = 1\nname = "bad"\ncolor = 1\n[link]\ndrp = 1\n')

    assert main(["run", path]) == USAGE

    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"disque-trio sim: {path}:3: unknown key 'color'")
    assert second == f"disque-trio sim: {path}:5: unknown key 'drp', did you mean 'drop'?"


def test_an_engine_that_a_scenario_is_not_for_is_refused(small: str, capsys: Capture) -> None:
    assert main(["run", small, "--engine", "trio"]) == USAGE

    assert f"{small} cannot run in the trio engine, only in heap" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--html", "--trace"])
def test_an_unwritable_output_is_told_before_the_run(
    option: str, small: str, tmp_path: Path, capsys: Capture
) -> None:
    folder = tmp_path / "gone"
    target = str(folder / "x.jsonl")

    assert main(["run", small, option, target]) == USAGE

    out, err = capsys.readouterr()
    assert f"cannot write {target}: the directory {folder} does not exist" in err
    assert out == ""


def test_a_trace_of_no_known_kind_is_refused(small: str, capsys: Capture) -> None:
    assert main(["run", small, "--trace", "x.txt"]) == USAGE

    assert "x.txt: a trace ends in .jsonl, .arrow, .parquet" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "sweep", "replay", "shrink", "expand", "draw"])
def test_every_command_has_a_help_text(command: str, capsys: Capture) -> None:
    assert main([command, "--help"]) == PASSED

    assert f"disque-trio sim {command}" in capsys.readouterr().out


def test_the_help_says_what_the_exit_status_means(capsys: Capture) -> None:
    assert main(["--help"]) == PASSED

    out = capsys.readouterr().out
    assert "3    the result says nothing" in out
