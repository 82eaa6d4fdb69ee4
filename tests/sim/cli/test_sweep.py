"""`disque-trio sim sweep` on this machine."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from disque_trio.cli.frame import INTERRUPTED, USAGE
from disque_trio.cli.sim import main
from disque_trio.cli.sim.execution import Result
from disque_trio.cli.sim.outcomes import NOTHING_TESTED, PASSED, VIOLATED
from disque_trio.cli.sim.pool import Done, Task
from disque_trio.cli.sim.results import DirectoryStore
from tests.sim.cli.files import SMALL, Capture, scenario_file


def test_a_sweep_runs_the_seeds_of_the_scenario(small: str, capsys: Capture) -> None:
    assert main(["sweep", small, "--jobs", "1", "--json"]) == PASSED

    (found,) = json.loads(capsys.readouterr().out)
    assert found["seeds"] == 3
    assert found["failed"] == []
    assert found["delivered"] == found["added"] > 0


@pytest.mark.slow
def test_a_sweep_tells_failures_as_they_come_and_keeps_their_plans(
    again: str, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"

    status = main(["sweep", again, "--seeds", "0:2", "--jobs", "1", "--out", str(out)])

    assert status == VIOLATED
    assert f"again with: disque-trio sim run {again} --seed 1" in capsys.readouterr().err
    assert main(["run", str(out / "failures" / "again-1.json")]) == VIOLATED


@pytest.mark.slow
def test_a_mark_that_no_seed_hits_is_told(tmp_path: Path, capsys: Capture) -> None:
    text = SMALL + '[expect]\nsometimes = ["crash", "collected"]\n'
    path = scenario_file(tmp_path, "small", text)

    for more, status in (([], PASSED), (["--require-marks"], NOTHING_TESTED)):
        assert main(["sweep", path, "--seeds", "0:2", "--jobs", "1", *more]) == status

        assert "not seen in small: crash\n" in capsys.readouterr().out


@pytest.mark.slow
def test_a_sweep_that_delivers_no_job_has_tested_nothing(tmp_path: Path, capsys: Capture) -> None:
    path = scenario_file(tmp_path, "small", SMALL.replace("[[consumer]]\n", ""))

    assert main(["sweep", path, "--seeds", "0:2", "--jobs", "1"]) == NOTHING_TESTED

    assert "not seen in small: no job was delivered\n" in capsys.readouterr().out


def test_a_result_that_two_sweeps_have_is_one_line(tmp_path: Path) -> None:
    one, other = (DirectoryStore(str(tmp_path), {"calm": "v"}) for _ in range(2))
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"path": "a sweep was killed here')

    for keeping, seed in ((one, 0), (other, 0), (other, 1), (one, 1), (one, 2)):
        result = Result(scenario="calm", seed=seed, engine="heap", is_ok=True)
        keeping.add("calm", Done(Task("calm", seed, "heap", 60), result))

    for keeping in (one, other):
        keeping.close()
    assert [each.seed for _, each in one.kept()] == [0, 1, 2]
    assert (one.elsewhere, other.elsewhere) == (1, 1)


@pytest.mark.slow
def test_two_sweeps_at_once_have_each_seed_once(small: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "disque_trio", "sim", "sweep", small, "--seeds", "0:12"]
    command += ["--jobs", "1", "--recheck", "0", "--out", str(tmp_path / "out")]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [each.communicate(timeout=120)[1] for each in both]

    assert [each.returncode for each in both] == [PASSED, PASSED]
    lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    facts = [json.loads(line) for line in lines]
    assert sorted(each["seed"] for each in facts) == list(range(12))
    assert any("also stored by another sweep" in text or "done before" in text for text in told)


@pytest.mark.slow
def test_a_sweep_goes_on_where_it_stopped(small: str, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    arguments = ["sweep", small, "--jobs", "1", "--out", str(out)]
    main([*arguments, "--seeds", "0:3"])
    with (out / "results.jsonl").open("ab") as file:
        file.write(b'{"path": "\xff half a li')
    capsys.readouterr()

    assert main([*arguments, "--seeds", "0:5"]) == PASSED

    captured = capsys.readouterr()
    assert "3 seeds done before, 2 to go" in captured.err
    assert "2 seeds in" in captured.out
    assert (out / "results.jsonl").read_bytes().count(b"\n") == 6


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_seed_that_takes_too_long_has_failed(tmp_path: Path, capsys: Capture) -> None:
    text = SMALL.replace('chaos = "3s"', 'chaos = "10d"').replace("rate = 2", "rate = 0.0001")
    path = scenario_file(tmp_path, "small", text)

    status = main(["sweep", path, "--seeds", "0:1", "--jobs", "1", "--limit", "1"])

    assert status == VIOLATED
    assert "violated hang not finished after 1 s" in capsys.readouterr().err


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Tests in the background of a shell ignore Ctrl-C, and so would what they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def sweep_of(scenario: str, out: Path) -> Iterator[subprocess.Popen[str]]:
    """In a process group of its own, as a shell does it, so that Ctrl-C comes to all."""
    command = [sys.executable, "-m", "disque_trio", "sim", "sweep", scenario]
    command += ["--seeds", "0:100000", "--jobs", "2", "--out", str(out)]
    sweep = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield sweep
    finally:
        with suppress(ProcessLookupError):
            os.killpg(sweep.pid, signal.SIGKILL)
        sweep.communicate()


def wait_until(sweep: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert sweep.poll() is None, sweep.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)  # it is another process, in real time


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_a_sweep_and_keeps_what_is_finished(small: str, tmp_path: Path) -> None:
    results = tmp_path / "out" / "results.jsonl"
    with sweep_of(small, tmp_path / "out") as sweep:
        wait_until(sweep, lambda: results.exists() and results.read_text().count("\n") > 3)
        os.killpg(sweep.pid, signal.SIGINT)
        told, complaint = sweep.communicate(timeout=30)

    assert sweep.returncode == INTERRUPTED
    assert "Traceback" not in complaint
    assert "interrupted after" in complaint
    assert "small" in told
    lines = results.read_text().splitlines()
    assert all(json.loads(line)["is_ok"] for line in lines)


def begin(sweep: subprocess.Popen[str]) -> None:
    """Wait until it has started its processes, which still import what they need."""

    def has_three() -> bool:  # that of multiprocessing's own, and two for the seeds
        return len(Path(f"/proc/{sweep.pid}/task/{sweep.pid}/children").read_text().split()) == 3

    wait_until(sweep, has_three)


@pytest.mark.usefixtures("interruptible")
def test_processes_that_only_begin_are_deaf_to_ctrl_c(small: str, tmp_path: Path) -> None:
    with sweep_of(small, tmp_path / "out") as sweep:
        begin(sweep)
        os.killpg(sweep.pid, signal.SIGINT)
        _, complaint = sweep.communicate(timeout=30)

    assert sweep.returncode == INTERRUPTED
    assert "Traceback" not in complaint


@pytest.mark.slow
def test_processes_that_only_begin_end_with_the_sweep(small: str, tmp_path: Path) -> None:
    with sweep_of(small, tmp_path / "out") as sweep:
        begin(sweep)
        sweep.kill()
        # Its pipes are theirs, too: they are at their end when all have ended.
        sweep.communicate(timeout=30)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_processes_of_a_sweep_end_with_it(
    small: str, tmp_path: Path, how: signal.Signals
) -> None:
    results = tmp_path / "out" / "results.jsonl"
    with sweep_of(small, tmp_path / "out") as sweep:
        wait_until(sweep, lambda: results.exists() and results.read_text().count("\n") > 3)
        children = Path(f"/proc/{sweep.pid}/task/{sweep.pid}/children").read_text().split()
        sweep.send_signal(how)
        sweep.communicate(timeout=30)

    assert len(children) == 3
    assert [each for each in children if Path(f"/proc/{each}/exe").exists()] == []


def test_results_that_cannot_be_written_end_a_sweep_and_keep_what_was(
    small: str, tmp_path: Path
) -> None:
    sweep = [sys.executable, "-m", "disque_trio", "sim", "sweep", small, "--seeds", "0:40"]
    limited = ["sh", "-c", 'ulimit -f 4; exec "$@"', "sh", *sweep, "--jobs", "1"]

    done = subprocess.run(
        [*limited, "--out", "out"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == USAGE
    folder = tmp_path / "out"
    assert f"cannot write to {folder}: File too large; earlier results are kept" in done.stderr
    assert len(Path(tmp_path, "out", "results.jsonl").read_text("utf-8").splitlines()) > 1
