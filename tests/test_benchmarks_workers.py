"""What several workers bring, measured in small; and who ends it leaves nothing behind."""

import contextlib
import multiprocessing
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import contenders, workers
from benchmarks.__main__ import INTERRUPTED
from benchmarks.load import processes
from benchmarks.load.tasks import Report
from tests.cluster.processes import DISQUE_TRIO, START_S, Server, eventually


@pytest.mark.slow
def test_each_load_is_measured_with_one_process_and_with_several_of_each_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(workers, "CLIENTS", 2)
    other = tmp_path / "other"
    other.write_text(f'#!/bin/sh\nexec {shlex.join(DISQUE_TRIO)} "$@"\n')
    other.chmod(0o755)

    assert workers.main(["--jobs", "400", "--rounds", "1", "--against", str(other)]) == 0

    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    assert [tuple(cell[:2]) for cell in cells] == [
        (load, f"{count} {server}")
        for load in sorted(workers.LOADS)
        for server in (contenders.OURS, "other")
        for count in (1, 2)
    ]
    assert all(float(cell[2].replace(",", "")) > 0 for cell in cells)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--workers", "0"], "0 is no whole number of at least 2"),
        (["--workers", "1"], "1 is no whole number of at least 2"),
        (["--jobs", "few"], "few is no whole number of at least 200"),
        (["--rounds", "0"], "0 is no whole number of at least 1"),
        (["--against", "nowhere"], "nowhere: there is no such program"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_is_started(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        workers.main(words)

    assert complaint in capsys.readouterr().err


def broker(name: str, made: str) -> Any:
    """A benchmark of three nodes, the last of which makes some file while it starts."""
    others = ",".join(each for each in contenders.KNOWN if each != name)
    words = ["--only", "peers-three", "--rounds", "9", "--without", others]
    is_missing = all(each.name != name for each in contenders.others(""))
    return pytest.param(words, f"node-2/{made}", marks=pytest.mark.skipif(is_missing, reason=name))


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("words", "made"),
    [
        (["workers"], "nodes.conf"),
        (["--only", "add", "--without", "redis-server"], "nodes.conf"),
        broker("rabbitmq", "data/*/schema.DAT"),
        broker("jetstream-file", "store/jetstream"),
    ],
)
def test_a_sigterm_leaves_neither_files_nor_servers(
    tmp_path: Path, words: list[str], made: str
) -> None:
    popen = subprocess.Popen(
        [sys.executable, "-m", "benchmarks", *words],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        eventually(lambda: list(tmp_path.rglob(made)), START_S, "a server has started")
        popen.send_signal(signal.SIGTERM)
        _, complaint = popen.communicate(timeout=START_S)
    finally:
        popen.kill()
        popen.wait()

    assert popen.returncode in {1, INTERRUPTED}
    assert "Traceback" not in complaint
    assert not list(tmp_path.rglob(made))
    eventually(lambda: not running_in(tmp_path), START_S, "no process is left")


def running_in(directory: Path) -> list[str]:
    """The processes whose command lines or environments name the directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.append(repr((path / "cmdline").read_bytes() + (path / "environ").read_bytes()))
    return [about for about in found if str(directory) in about]


def test_a_server_is_ended_that_was_waited_for_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Server) -> Server:
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "wait", interrupted)

    with pytest.raises(KeyboardInterrupt), workers.running(1, tmp_path):
        pass

    assert not running_in(tmp_path)


def test_an_interrupt_while_a_server_is_started_comes_when_it_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = subprocess.Popen
    # A suite that runs in the background has it ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupted(*words: Any, **options: Any) -> Any:
        started = start(*words, **options)
        signal.raise_signal(signal.SIGINT)
        return started

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    server = Server(tmp_path)
    try:
        with pytest.raises(KeyboardInterrupt):
            server.start()
        assert server.is_meant_to_run
    finally:
        signal.signal(signal.SIGINT, before)
        server.close()
    assert not running_in(tmp_path)


def test_a_load_process_whose_parent_was_ended_says_nothing() -> None:
    def refused(start: Callable[[], None]) -> Report:
        raise ConnectionRefusedError

    ours, theirs = multiprocessing.Pipe()
    ours.close()

    processes._run(processes.Task(refused, ()), theirs)
