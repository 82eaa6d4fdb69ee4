"""`disque-trio sim expand`, `draw`, `replay` and `shrink`."""

import json
from pathlib import Path

import pytest

from disque_trio.cli.frame import USAGE
from disque_trio.cli.sim import main
from disque_trio.cli.sim.outcomes import NOTHING_TESTED, PASSED, VIOLATED
from disque_trio.sim.traces import files as traces_files
from tests.sim.cli.files import Capture

# expand, draw, traces and replay


def test_an_expanded_plan_runs_like_its_seed(small: str, tmp_path: Path, capsys: Capture) -> None:
    plan = str(tmp_path / "plan.json")
    assert main(["expand", small, "--seed", "5", "-o", plan]) == PASSED
    main(["run", small, "--seed", "5", "--json"])
    by_seed = json.loads(capsys.readouterr().out)

    assert main(["run", plan, "--json"]) == PASSED

    assert json.loads(capsys.readouterr().out)["digest"] == by_seed["digest"]


def test_a_plan_is_shown_if_no_file_is_named(small: str, capsys: Capture) -> None:
    assert main(["expand", small]) == PASSED

    assert json.loads(capsys.readouterr().out)["scenario"] == "small"


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ["jsonl", "arrow", "parquet"])
def test_a_trace_can_be_judged_and_compared(
    kind: str, again: str, tmp_path: Path, capsys: Capture
) -> None:
    trace = str(tmp_path / f"t.{kind}")
    main(["run", again, "--trace", trace])
    capsys.readouterr()

    assert main(["replay", trace]) == VIOLATED

    out = capsys.readouterr().out
    assert "again seed 0, trace" in out
    assert "violated D1" in out
    assert "otherwise" not in out


def test_a_trace_that_the_plan_does_not_make_any_more_is_told(
    small: str, tmp_path: Path, capsys: Capture
) -> None:
    trace = tmp_path / "t.jsonl"
    main(["run", small, "--trace", str(trace)])
    capsys.readouterr()
    lines = trace.read_text().splitlines(keepends=True)
    kept = [line for line in lines if '"kind":"recv"' not in line or '"time":0' in line]
    trace.write_text("".join([*lines[:400], *kept[-1:]]))

    main(["replay", str(trace)])
    told = capsys.readouterr().out
    main(["replay", "--json", str(trace)])

    assert "the plan runs differently now" in told
    difference = json.loads(capsys.readouterr().out)["difference"]
    assert len(difference["before"]) == 3
    assert f"  - {difference['recorded']}\n  + {difference['again']}" in told


def test_a_trace_that_ends_before_its_run_does_not_pass(
    small: str, tmp_path: Path, capsys: Capture
) -> None:
    trace = tmp_path / "t.jsonl"
    main(["run", small, "--trace", str(trace)])
    rows = trace.read_text().splitlines(keepends=True)
    assert main(["replay", str(trace)]) == PASSED
    assert "ends before" not in capsys.readouterr().out
    trace.write_text("".join(rows[:-1]))

    assert main(["replay", str(trace)]) == NOTHING_TESTED
    told = capsys.readouterr().out
    assert main(["replay", "--json", str(trace)]) == NOTHING_TESTED

    assert "the trace ends before its run: the rest was not checked" in told
    assert json.loads(capsys.readouterr().out)["is_cut"] is True


def test_a_violation_in_a_trace_that_ends_before_its_run_is_told(
    again: str, tmp_path: Path, capsys: Capture
) -> None:
    trace = tmp_path / "t.jsonl"
    main(["run", again, "--trace", str(trace)])
    rows = trace.read_text().splitlines(keepends=True)
    trace.write_text("".join(rows[:-1]))

    assert main(["replay", str(trace)]) == VIOLATED
    assert "the trace ends before its run" in capsys.readouterr().out


def test_a_damaged_trace_is_told_with_its_line(tmp_path: Path, capsys: Capture) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text('{"time":1,"kind":"serve"}\n{"time":2\n')

    assert main(["replay", str(trace)]) == USAGE

    assert f"{trace}: line 2: no JSON" in capsys.readouterr().err


def test_arrow_files_without_pyarrow_are_refused_with_advice(
    small: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> object:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(traces_files, "import_module", absent)

    assert main(["run", small, "--trace", str(tmp_path / "t.arrow")]) == USAGE

    assert "pip install 'disque-trio[trace]'" in capsys.readouterr().err


def test_a_run_is_drawn(small: str, tmp_path: Path, capsys: Capture) -> None:
    page = tmp_path / "x.html"

    assert main(["draw", small, "-o", str(page)]) == PASSED

    assert page.read_text("utf-8").startswith("<!")
    assert f"drawn into {page}" in capsys.readouterr().out


# shrink


def test_a_failure_is_shrunk_and_saved(again: str, tmp_path: Path, capsys: Capture) -> None:
    plan = str(tmp_path / "smallest.json")

    assert main(["shrink", again, "--seed", "3", "-o", plan]) == PASSED

    out = capsys.readouterr().out
    assert "2 operations (1 add, 1 consumer, 0 faults) on 1 node" in out
    assert f"again with: disque-trio sim run {plan}" in out
    assert main(["run", plan]) == VIOLATED


def test_what_passes_cannot_be_shrunk(small: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["shrink", small, "-o", str(tmp_path / "x.json")]) == USAGE

    assert "seed 0 of small passes; nothing to shrink" in capsys.readouterr().err


def test_only_what_is_violated_can_be_shrunk(again: str, tmp_path: Path, capsys: Capture) -> None:
    arguments = ["shrink", again, "--property", "L1", "-o", str(tmp_path / "x.json")]

    assert main(arguments) == USAGE

    error = capsys.readouterr().err
    assert "seed 0 of again violates D1" in error
    assert "not L1" in error
