import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from disque_trio.cli.frame import INTERRUPTED, USAGE
from disque_trio.cli.sim import main
from disque_trio.cli.sim.outcomes import NOTHING_TESTED, PASSED, VIOLATED
from disque_trio.sim import tracefile

SMALL = """
schema = 1
name = "small"
[seeds]
ci = 3
pinned = [{ seed = 77, note = "here for the test" }]
[cluster]
nodes = 3
[[producer]]
rate = 2
job = { replicate = 2, retry = "5s" }
[[consumer]]
[end]
chaos = "3s"
drain = "2s"
"""
AGAIN = """
schema = 1
name = "again"
[cluster]
nodes = 2
[[producer]]
rate = 2
job = { replicate = 2, retry = "1s" }
[[consumer]]
ack = { none = 1 }
[end]
chaos = "5s"
"""
"""Jobs come again, and nothing may: the cause is D1, or D5 where two nodes wake together."""


@pytest.fixture
def small(tmp_path: Path) -> str:
    return _file(tmp_path, "small", SMALL)


@pytest.fixture
def again(tmp_path: Path) -> str:
    return _file(tmp_path, "again", AGAIN)


def _file(folder: Path, name: str, text: str) -> str:
    path = folder / f"{name}.toml"
    path.write_text(text, "utf-8")
    return str(path)


Capture = pytest.CaptureFixture[str]


# run


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
    assert f"seed 3, again with: disque-trio sim run {again} --seed 3" in out
    assert re.search(r"^    t= .* deliver .*\[[.hQx]{2}\]  delivery 2: D1$", out, re.MULTILINE)
    assert "the last events of job D-" in out
    assert out.rstrip().splitlines()[-1].split()[2] == "get.deliver"


@pytest.mark.parametrize("kind", ["jsonl", "arrow"])
def test_a_trace_that_finds_the_disk_full_is_no_failure_of_a_node(
    small: str, tmp_path: Path, capsys: Capture, kind: str
) -> None:
    target = tmp_path / f"full.{kind}"
    target.symlink_to("/dev/full")

    assert main(["run", small, "--trace", str(target)]) == USAGE

    assert f"cannot write {target}: No space left on device" in capsys.readouterr().err


def test_a_run_in_which_nothing_is_delivered_tests_nothing(tmp_path: Path, capsys: Capture) -> None:
    path = _file(tmp_path, "idle", 'schema = 1\nname = "idle"\n[end]\nchaos = "1s"\n')

    assert main(["run", path]) == NOTHING_TESTED

    assert "nothing tested: no job was delivered" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "the following arguments are required: FILE"),
        (["run", "gone.toml"], "cannot read gone.toml: No such file or directory"),
        (["run", "gone.txt"], "gone.txt is neither a scenario (.toml) nor a plan (.json)"),
        (["run", "gone.json"], "cannot read gone.json: No such file or directory"),
        (["run", "gone.json", "--seed", "1"], "gone.json has its seed in it: leave --seed out"),
        (["run", "x.toml", "--seed", "-1"], "-1 is no seed: a whole number of 0 or more"),
        (["run", "x.toml", "--seed", "many"], "many is no seed: a whole number of 0 or more"),
        (["run", "x.toml", "--engine", "steam"], "invalid choice: 'steam'"),
        (["sweep", "x.toml", "--seeds", "5:5"], "5:5 has no seeds: B stands behind the last"),
        (["sweep", "x.toml", "--seeds", "a:b"], "a:b is no range of seeds, such as 0:1000"),
        (["sweep", "x.toml", "--jobs", "0"], "0 is no whole number of 1 or more"),
        (["sweep", "x.toml", "--recheck", "2"], "2 is no share from 0 to 1"),
        (["sweep", "x.json"], "x.json is no scenario: its name does not end in .toml"),
        (["replay", "x.jsonl"], "cannot read x.jsonl: No such file or directory"),
        (["replay", "x.json", "y.json"], "one plan at a time"),
        (["draw", "x.jsonl", "--seed", "1"], "x.jsonl has its seed in it: leave --seed out"),
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
    path = _file(tmp_path, "bad", 'schema = 1\nname = "bad"\ncolor = 1\n[link]\ndrp = 1\n')

    assert main(["run", path]) == USAGE

    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"disque-trio sim: {path}:3: unknown key 'color'")
    assert second == f"disque-trio sim: {path}:5: unknown key 'drp', did you mean 'drop'?"


def test_an_engine_that_a_scenario_is_not_for_is_refused(small: str, capsys: Capture) -> None:
    assert main(["run", small, "--engine", "trio"]) == USAGE

    assert f"{small} is not for the trio engine, only for heap" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--html", "--trace"])
def test_an_unwritable_output_is_told_before_the_run(
    option: str, small: str, tmp_path: Path, capsys: Capture
) -> None:
    target = str(tmp_path / "gone" / "x.jsonl")

    assert main(["run", small, option, target]) == USAGE

    out, err = capsys.readouterr()
    assert f"cannot write {target}: No such file or directory" in err
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
    assert "3    nothing was tested" in out


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

    assert "the plan runs otherwise now" in capsys.readouterr().out


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

    monkeypatch.setattr(tracefile, "import_module", absent)

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

    assert "seed 0 of small passes: there is nothing to shrink" in capsys.readouterr().err


def test_only_what_is_violated_can_be_shrunk(again: str, tmp_path: Path, capsys: Capture) -> None:
    arguments = ["shrink", again, "--property", "L1", "-o", str(tmp_path / "x.json")]

    assert main(arguments) == USAGE

    error = capsys.readouterr().err
    assert "seed 0 of again violates D1" in error
    assert "not L1" in error


# sweep


def test_a_sweep_runs_pinned_seeds_and_those_of_the_scenario(small: str, capsys: Capture) -> None:
    assert main(["sweep", small, "--jobs", "1", "--json"]) == PASSED

    (found,) = json.loads(capsys.readouterr().out)
    assert found["seeds"] == 4
    assert found["failed"] == []
    assert found["delivered"] == found["added"] > 0


def test_a_sweep_tells_failures_as_they_come_and_keeps_their_plans(
    again: str, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"

    status = main(["sweep", again, "--seeds", "0:2", "--jobs", "1", "--out", str(out)])

    assert status == VIOLATED
    assert f"again with: disque-trio sim run {again} --seed 1" in capsys.readouterr().err
    assert main(["run", str(out / "failures" / "again-1.json")]) == VIOLATED


def test_a_mark_that_no_seed_hits_is_told(tmp_path: Path, capsys: Capture) -> None:
    text = SMALL + '[expect]\nsometimes = ["crash", "collected"]\n'
    path = _file(tmp_path, "small", text)

    assert main(["sweep", path, "--seeds", "0:2", "--jobs", "1"]) == NOTHING_TESTED

    assert "not seen in small: crash\n" in capsys.readouterr().out


def test_a_sweep_goes_on_where_it_stopped(small: str, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    arguments = ["sweep", small, "--no-pinned", "--jobs", "1", "--out", str(out)]
    main([*arguments, "--seeds", "0:3"])
    with (out / "results.jsonl").open("a") as file:
        file.write('{"path": "half a li')
    capsys.readouterr()

    assert main([*arguments, "--seeds", "0:5"]) == PASSED

    captured = capsys.readouterr()
    assert "3 seeds were done before, 2 to go" in captured.err
    assert "2 seeds in" in captured.out
    assert len((out / "results.jsonl").read_text().splitlines()) == 6


def test_results_of_another_scenario_do_not_count(
    small: str, tmp_path: Path, capsys: Capture
) -> None:
    arguments = ["sweep", small, "--seeds", "0:2", "--jobs", "1", "--out", str(tmp_path / "out")]
    main(arguments)
    Path(small).write_text(SMALL.replace("rate = 2", "rate = 3"))
    capsys.readouterr()

    main(arguments)

    assert "done before" not in capsys.readouterr().err


def test_a_sweep_that_cannot_keep_its_results_does_not_begin(
    small: str, tmp_path: Path, capsys: Capture
) -> None:
    target = tmp_path / "file"
    target.write_text("")

    assert main(["sweep", small, "--out", str(target / "out")]) == USAGE

    assert f"cannot write to {target / 'out'}: Not a directory" in capsys.readouterr().err


def test_a_seed_that_takes_too_long_has_failed(tmp_path: Path, capsys: Capture) -> None:
    text = SMALL.replace('chaos = "3s"', 'chaos = "10d"').replace("rate = 2", "rate = 0.0001")
    path = _file(tmp_path, "small", text)

    status = main(["sweep", path, "--seeds", "0:1", "--no-pinned", "--jobs", "1", "--limit", "1"])

    assert status == VIOLATED
    assert "violated hang not finished after 1 s" in capsys.readouterr().err


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Tests in the background of a shell ignore Ctrl-C, and so would what they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_a_sweep_and_keeps_what_is_finished(small: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    results = out / "results.jsonl"
    command = [sys.executable, "-m", "disque_trio", "sim", "sweep", small]
    command += ["--seeds", "0:100000", "--jobs", "2", "--out", str(out)]
    sweep = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 60
        while not (results.exists() and results.read_text().count("\n") > 3):
            assert sweep.poll() is None, sweep.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)  # it is another process, in real time
        os.killpg(sweep.pid, signal.SIGINT)
        told, complaint = sweep.communicate(timeout=30)
    finally:
        if sweep.poll() is None:
            os.killpg(sweep.pid, signal.SIGKILL)

    assert sweep.returncode == INTERRUPTED
    assert "Traceback" not in complaint
    assert "interrupted after" in complaint
    assert "small" in told
    lines = results.read_text().splitlines()
    assert all(json.loads(line)["is_ok"] for line in lines)


def test_results_that_cannot_be_written_end_a_sweep_and_keep_what_was(
    small: str, tmp_path: Path
) -> None:
    sweep = [sys.executable, "-m", "disque_trio", "sim", "sweep", small, "--seeds", "0:40"]
    limited = ["sh", "-c", 'ulimit -f 4; exec "$@"', "sh", *sweep, "--jobs", "1"]

    done = subprocess.run(
        [*limited, "--out", "out"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == USAGE
    assert "cannot write to out: File too large; what was written before is kept" in done.stderr
    assert len(Path(tmp_path, "out", "results.jsonl").read_text("utf-8").splitlines()) > 1
