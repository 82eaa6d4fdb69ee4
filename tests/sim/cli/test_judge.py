"""`disque-trio sim judge`, and the histories that `sim run` writes."""

import json
from pathlib import Path
from typing import Any

import pytest

from disque_trio.cli.frame import USAGE
from disque_trio.cli.sim import main
from disque_trio.cli.sim.outcomes import NOTHING_TESTED, PASSED, VIOLATED
from tests.sim.cli.files import SMALL, Capture, scenario_file

JOB = "D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
LOST: list[dict[str, Any]] = [
    {"history": 1},
    {"client": "c", "call": 1, "at": 0, "request": ["ADDJOB", "q", "b", 0]},
    {"client": "c", "call": 1, "at": 1, "reply": JOB},
    {"client": "c", "call": 2, "at": 100, "request": ["GETJOB", "FROM", "q", "TIMEOUT", "9000"]},
    {"client": "c", "call": 2, "at": 109, "reply": None},
]


def written(path: Path, *lines: object) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


@pytest.mark.parametrize("engine", ["heap", "trio"])
def test_a_run_writes_a_history_that_passes(tmp_path: Path, capsys: Capture, engine: str) -> None:
    name = 'name = "small"\n'
    text = SMALL.replace(name, f'{name}engines = ["heap", "trio"]\n')
    small = scenario_file(tmp_path, "small", text)
    path = str(tmp_path / "h.jsonl")
    assert main(["run", small, "--history", path, "--engine", engine]) == PASSED
    capsys.readouterr()

    assert main(["judge", path]) == PASSED
    assert "passed" in capsys.readouterr().out
    assert main(["judge", path, "--json"]) == PASSED
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["is_ok"] is True
    assert verdict["deliveries"] > 0


def test_a_history_and_a_trace_may_be_written_together(small: str, tmp_path: Path) -> None:
    history, trace = tmp_path / "h.jsonl", tmp_path / "t.jsonl"

    assert main(["run", small, "--history", str(history), "--trace", str(trace)]) == PASSED
    assert history.stat().st_size
    assert trace.stat().st_size


def test_a_loss_is_a_violation_if_the_faults_are_known(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "h.jsonl", *LOST)
    assert main(["judge", path]) == NOTHING_TESTED
    assert "note: faults are not known" in capsys.readouterr().out

    assert main(["judge", path, "--faults", "known"]) == VIOLATED
    out = capsys.readouterr().out
    assert f"violated H4 at 1.000, job {JOB}: was added to q, and never delivered" in out
    assert f"see {path}:2, {path}:4" in out


def test_other_clients_may_have_taken_it(tmp_path: Path) -> None:
    path = written(tmp_path / "h.jsonl", *LOST)

    assert main(["judge", path, "--faults", "known", "--others"]) == NOTHING_TESTED


def test_the_calls_of_several_files_are_judged_together(tmp_path: Path, capsys: Capture) -> None:
    taken = {"client": "d", "call": 1, "at": 50, "request": ["ACKJOB", JOB], "reply": 1}
    paths = [written(tmp_path / "a", *LOST), written(tmp_path / "b", taken)]

    assert main(["judge", "--json", "--faults", "known", *paths]) == NOTHING_TESTED
    assert json.loads(capsys.readouterr().out)["clients"] == 2


def test_a_wrong_line_is_named(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "h.jsonl", LOST[0], {**LOST[1], "at": "soon"})

    assert main(["judge", path]) == USAGE
    assert f"{path}:2: 'at' cannot be 'soon': write a time in seconds" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, capsys: Capture) -> None:
    path = str(tmp_path / "none.jsonl")

    assert main(["judge", path]) == USAGE
    assert f"cannot read {path}: No such file" in capsys.readouterr().err


def test_a_history_is_of_one_simulated_run(small: str, tmp_path: Path, capsys: Capture) -> None:
    path = str(tmp_path / "h.jsonl")

    assert main(["run", small, small, "--history", path]) == USAGE
    assert "--history need a single run" in capsys.readouterr().err
    assert main(["run", small, "--history", path, "--engine", "tcp"]) == USAGE
