"""`python -m benchmarks profile`: what py-spy has seen becomes shares of parts and functions."""

import collections
import os
import stat
import sys
from pathlib import Path

import pytest

from benchmarks import output, profile, profilers
from benchmarks.cases import CASES
from benchmarks.profile import main, part_of, profile_of
from benchmarks.profilers import Frame, Profilers, tally
from benchmarks.tool import BenchmarkError

RUN = "run (trio/_core/_run.py:2424);SocketEventLoop._turns (disque_trio/net/event_loop.py:127)"
ARM = "Timers.arm (disque_trio/statemachine/timers.py:70)"
ADD = next(case for case in CASES if case.name == "add")


def seen(counts: dict[Frame, int], *, user: int, kernel: int) -> Profilers:
    return Profilers(collections.Counter(counts), user, kernel)


# What py-spy writes.


def test_a_sample_counts_for_the_function_on_top() -> None:
    lines = [
        f"{RUN};{ARM} 7",
        f"{RUN};enqueue (disque_trio/statemachine/lifecycle.py:9);{ARM} 2",
        f"{RUN} 1",
        "run (trio/_core/_run.py:2424) 4",
    ]

    assert tally(lines) == {
        Frame("Timers.arm", "statemachine/timers.py"): 9,
        Frame("SocketEventLoop._turns", "net/event_loop.py"): 1,
        Frame("run", "trio/_core/_run.py"): 4,
    }


def test_what_is_no_stack_does_not_count() -> None:
    assert tally(["", "process 17 3", "torn (disque_trio/no"]) == {}


# Shares.


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("statemachine/commands/addjob.py", "machine"),
        ("wire/resp.py", "wire"),
        ("trio/_core/_run.py", "sockets"),
        ("storage/journal_file.py", "storage"),
        ("logging/__init__.py", "else"),
    ],
)
def test_each_file_belongs_to_a_part(file: str, part: str) -> None:
    assert part_of(file) == part


def test_every_file_that_a_part_names_is_there() -> None:
    package = Path(profile.__file__).parents[1] / "disque_trio"
    for patterns in profile.PARTS.values():
        for pattern in patterns:
            assert pattern.startswith("trio/") or list(package.glob(pattern)), pattern


def test_kernel_and_parts_make_up_the_whole() -> None:
    arm = Frame("Timers.arm", "statemachine/timers.py")
    turn = Frame("SocketEventLoop._turns", "net/event_loop.py")

    found = profile_of(ADD, {"cpu": 20.0}, seen({arm: 30, turn: 10}, user=80, kernel=20))

    assert found.kernel == 0.2
    assert found.functions == pytest.approx({arm: 0.6, turn: 0.2})
    assert found.parts["machine"] == pytest.approx(0.6)
    assert found.kernel + sum(found.parts.values()) == pytest.approx(1.0)


def test_a_load_that_was_over_at_once_says_nothing() -> None:
    with pytest.raises(BenchmarkError, match="add: it was over before anything was seen"):
        profile_of(ADD, {"cpu": 20.0}, seen({}, user=0, kernel=0))


# The whole way, with somebody who looks in place of py-spy.

PRETENDER = """#!{python}
import signal, sys, time
out = sys.argv[sys.argv.index("--output") + 1]
def end(*_):
    open(out, "w").write(
        "run (disque_trio/net/event_loop.py:1);make (disque_trio/statemachine/job.py:1) 8\\n"
    )
    sys.exit(0)
signal.signal(signal.SIGINT, end)
print("py-spy> Sampling process 250 times a second. Press Control-C to exit.", flush=True)
signal.pause()
"""
REFUSER = """#!/bin/sh
echo 'Permission Denied: Try running again with elevated permissions'
exit 1
"""


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = tmp_path / profilers.TOOL
    program.write_text(script.format(python=sys.executable))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(profilers, "path", lambda: str(program))
    monkeypatch.setattr(profile, "path", lambda: str(program))


@pytest.mark.slow
def test_a_case_is_looked_at_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(tmp_path, monkeypatch, PRETENDER)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- profiles -->\nold\n<!-- end of profiles -->\nafter\n")

    status = main(["--only", "three-drain", "--size", "0.05", "--page", str(page)])

    assert status == 0, capsys.readouterr().out
    text = page.read_text()
    assert text.startswith("before\n<!-- profiles -->\n")
    assert "| drain of jobs with 3 copies |" in text
    assert "make " in text
    assert "old" not in text


def test_without_permission_to_trace_the_reason_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(tmp_path, monkeypatch, REFUSER)

    assert main(["--only", "add"]) == output.UNUSABLE

    assert "py-spy may not look at a node: Permission Denied" in capsys.readouterr().out


def test_without_py_spy_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    assert main([]) == output.UNUSABLE

    assert "pip install 'disque-trio[profile]'" in capsys.readouterr().out


@pytest.mark.parametrize("case", ["pong", "idle", "simulator"])
def test_what_has_no_time_per_operation_is_refused(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(tmp_path, monkeypatch, REFUSER)

    assert main(["--only", case]) == output.UNUSABLE

    assert f"--only {case}: there is no such case with a figure" in capsys.readouterr().out
