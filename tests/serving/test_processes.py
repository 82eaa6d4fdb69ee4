"""`disque-trio server --workers N`: several processes behind one port, as one would use them."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from disque_trio import cli
from tests.certificates import Authority
from tests.cluster.processes import becomes, eventually, free_port
from tests.cluster.talk import Client, connection
from tests.serving.process import WITHIN_S, Process, Talk, run, running, server
from tests.serving.test_systemd import Listener

READY = "all workers serve clients"


@contextlib.contextmanager
def workers(
    directory: Path, count: int, *options: str, port: int = 0
) -> Iterator[tuple[Process, int]]:
    """Workers that serve, and the port that they share; their own are the next ones above it."""
    port = port or free_port(count)
    place = ("--bind", "127.0.0.1", "--port", str(port), "--workers", str(count))
    with running(directory, "server", *place, *options) as process:
        process.says(READY)
        yield process, port


def pid_at(port: int) -> int:
    with connection(port) as client:
        return int(client.info("server")["process_id"])


def id_at(port: int) -> bytes:
    with connection(port) as client:
        return client.text("CLUSTER", "MYID")


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def meets_all(port: int, ids: set[bytes]) -> set[bytes]:
    """Which nodes one comes to at this port, asking until it was each of them."""
    met = set()
    for _ in range(200):
        met.add(id_at(port))
        if met == ids:
            break
    return met


def test_one_port_leads_to_all_of_them_and_each_tells_its_own(tmp_path: Path) -> None:
    with workers(tmp_path, 2) as (process, port), connection(port + 1) as first:
        ids = {id_at(port + 1), id_at(port + 2)}

        assert len(ids) == 2
        assert meets_all(port, ids) == ids
        hello = first.items("HELLO")
        addresses = {tuple(node[:3]) for node in hello[2:] if isinstance(node, list)}
        assert addresses == {
            (id_at(port + 1), b"127.0.0.1", b"%d" % (port + 1)),
            (id_at(port + 2), b"127.0.0.1", b"%d" % (port + 2)),
        }
        # They know each other from the first client on.
        assert first.add("q", "body", "REPLICATE", 2).startswith(b"D-")

        assert first.info("server")["tcp_port"] == str(port + 1)
        process.signal(signal.SIGTERM)
        assert process.ends() == 0


def test_what_lies_in_the_working_directory_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "trio.py").write_text("raise SystemExit('run')")
    program = Path(sys.executable).with_name("disque-trio")
    port = free_port(2)
    place = ("--port", str(port), "--bind", "127.0.0.1", "--workers", "2", "--logfile", "log")

    with open(tmp_path / "output", "wb") as output:
        words = [str(program), "server", *place]
        popen = subprocess.Popen(words, cwd=tmp_path, stdout=output, stderr=output)
    try:
        eventually(lambda: READY in (tmp_path / "log").read_text(), WITHIN_S, "they serve")
    finally:
        popen.terminate()

    assert popen.wait(WITHIN_S) == 0
    assert (tmp_path / "output").read_text() == ""


def test_a_worker_that_is_killed_comes_back_and_what_had_two_copies_is_still_there(
    tmp_path: Path,
) -> None:
    with workers(tmp_path, 2) as (process, port), connection(port + 1) as first:
        second_id, second_pid = id_at(port + 2), pid_at(port + 2)
        with connection(port + 2) as second:
            jobs = {second.add("q", number, "REPLICATE", 2) for number in range(50)}

        os.kill(second_pid, signal.SIGKILL)
        process.says("killed by SIGKILL")
        assert first.text("PING") == b"PONG"
        eventually(lambda: pid_at(port + 2) != second_pid, WITHIN_S, "the worker lives again")

        assert id_at(port + 2) == second_id
        assert {job for job in jobs if first.show(job)} == jobs
        becomes(
            lambda: meets_all(port, {id_at(port + 1), second_id}) == {id_at(port + 1), second_id},
            True,
            WITHIN_S,
            "both have clients of the shared port again",
        )
        assert "Traceback" not in process.text()


@pytest.mark.sample(3)
@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "SHUTDOWN"])
def test_all_end_when_one_is_told_to(tmp_path: Path, how: str) -> None:
    with workers(tmp_path, 2) as (process, port):
        pids = [pid_at(port + 1), pid_at(port + 2)]

        if how == "SHUTDOWN":
            with Talk(port + 2) as talk:
                assert talk.ask("SHUTDOWN") == b""
        else:
            process.signal(signal.Signals[how])

        assert process.ends() == 0
        assert all(map(is_gone, pids))
        assert "Traceback" not in process.text()
        assert "starts_again" not in process.text()


def test_without_the_supervisor_none_stays_behind(tmp_path: Path) -> None:
    with workers(tmp_path, 2) as (process, port):
        pids = [pid_at(port + 1), pid_at(port + 2)]

        process.signal(signal.SIGKILL)

        process.ends()
        eventually(lambda: all(map(is_gone, pids)), WITHIN_S, "the workers have ended")
        process.says("the supervisor has ended")


@pytest.mark.slow
def test_a_sigterm_to_one_worker_is_no_end_and_debug_restart_is_at_once(tmp_path: Path) -> None:
    with workers(tmp_path, 2) as (process, port):
        first, second = pid_at(port + 1), pid_at(port + 2)

        os.kill(first, signal.SIGTERM)
        with Talk(port + 2) as talk:
            assert talk.ask("DEBUG RESTART") == b""

        process.says("how='by SIGTERM' starts_again_in_s=0.5")
        process.says("how='to restart' starts_again_in_s=0.0")
        eventually(lambda: pid_at(port + 1) != first, WITHIN_S, "the first one lives again")
        eventually(lambda: pid_at(port + 2) != second, WITHIN_S, "the second one lives again")


def test_they_share_the_settings_and_each_has_its_part_of_the_memory(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("hush-hush\n")
    (tmp_path / "password").chmod(0o600)
    (tmp_path / "disque.conf").write_text(
        "requirepass-file password\nmaxmemory 1gb\nlogfile disque.log\nlog-format json\n"
        "cluster-secret 0123456789abcdef\nunixsocket disque.sock\ntrace-file rows\nworkers 2\n"
    )
    (tmp_path / "disque.conf").chmod(0o600)
    port = free_port(2)
    place = ("--port", str(port), "--bind", "127.0.0.1")

    with running(tmp_path, "server", "disque.conf", *place) as process:
        log = tmp_path / "disque.log"
        eventually(lambda: log.exists() and READY in log.read_text(), WITHIN_S, "they serve")
        with Talk(port) as talk, Talk(str(tmp_path / "disque.sock")) as local:
            assert talk.ask("PING").startswith(b"-NOAUTH")
            assert talk.ask("AUTH hush-hush") == b"+OK\r\n"
            assert b"%d" % (1 << 29) in talk.ask("CONFIG GET maxmemory")
            assert b"$1\r\n2\r\n" in talk.ask("CONFIG GET workers")
            refusal = talk.ask("CONFIG REWRITE")
            assert re.search(rb"this is worker [12] of 2, which share the file", refusal)
            assert talk.ask("SHUTDOWN REWRITE-AOF").startswith(b"-ERR Errors trying to SHUTDOWN")
            assert local.ask("AUTH hush-hush") == b"+OK\r\n"
            assert talk.ask("ADDJOB q body 5000 REPLICATE 2").startswith(b"+D-")
        process.signal(signal.SIGTERM)

        assert process.ends() == 0
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line.get("worker") for line in told} == {None, 1, 2}
    assert any("set appendonly" in line.get("reason", "") for line in told)
    assert not (tmp_path / "disque.sock").exists()
    assert (tmp_path / "worker-1" / "rows").exists()
    assert "requirepass-file password" in (tmp_path / "disque.conf").read_text()


@pytest.mark.slow
def test_jobs_outlive_a_restart_and_are_not_left_behind(tmp_path: Path) -> None:
    port = free_port(3)
    journal = ("--appendonly", "yes")
    with workers(tmp_path, 2, *journal, port=port) as (process, _):
        jobs = {}
        for each in (port + 1, port + 2):
            with connection(each) as client:
                jobs[each] = client.add("q", "body", "REPLICATE", 1)
        process.signal(signal.SIGTERM)
        assert process.ends() == 0

    alone = run(tmp_path, "server", "--port", str(port), "--bind", "127.0.0.1")
    with workers(tmp_path, 3, *journal, port=port):
        for each, job in jobs.items():
            with connection(each) as client:
                assert client.state(job) in {b"queued", b"active"}

    assert alone[0] == 1
    assert "may have jobs that no worker would serve: start with --workers 2" in alone[1]


def test_what_keeps_one_of_them_from_starting_ends_all(tmp_path: Path) -> None:
    port = free_port(2)
    place = ("--port", str(port), "--bind", "127.0.0.1", "--workers", "2")
    with socket.create_server(("127.0.0.1", port + 2)):
        status, output = run(tmp_path, "server", *place)

    assert status == 1
    assert f"worker 2: cannot listen on 127.0.0.1 port {port + 2}: Address already" in output
    assert "Traceback" not in output


@pytest.mark.slow
def test_a_shared_port_is_shared_with_no_other_process(tmp_path: Path) -> None:
    with workers(tmp_path, 2) as (_, port):
        others = tmp_path / "others"
        others.mkdir()

        place = ("--port", str(port), "--bind", "127.0.0.1", "--workers", "2")
        status, output = run(others, "server", *place)

    assert status == 1
    assert f"port {port}: Address already in use" in output


def test_a_node_that_meets_the_shared_port_meets_all(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with (
        workers(tmp_path, 2) as (_, port),
        server(tmp_path / "other") as (_, other),
        connection(other) as client,
    ):
        client.call("CLUSTER", "MEET", "127.0.0.1", port)

        becomes(
            lambda: addresses_at(client),
            {f"127.0.0.1:{each}" for each in (other, port + 1, port + 2)},
            WITHIN_S,
            "it knows both, by their own addresses",
        )


def addresses_at(client: Client) -> set[str]:
    """Of the nodes that are known there and reached."""
    lines = [line.split() for line in client.text("CLUSTER", "NODES").decode().splitlines()]
    return {line[1] for line in lines if line[5] == "connected" and "handshake" not in line[2]}


@pytest.mark.slow
def test_systemd_sees_them_as_one_service_and_a_worker_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd = Listener(str(tmp_path / "notify"))
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", "3000000")
    sent: list[list[str]] = []

    def listen() -> None:
        """All the time, as systemd does, or its socket would be full."""
        while sent[-1:] != [["STOPPING=1"]]:
            sent.append(systemd.receives())

    listening = threading.Thread(target=listen, daemon=True)
    listening.start()
    with contextlib.closing(systemd.socket), workers(tmp_path, 2) as (process, port):
        stopped = pid_at(port + 2)
        os.kill(stopped, signal.SIGSTOP)
        for words in ("does not respond", "killed by SIGKILL"):
            process.says(words)
        eventually(lambda: pid_at(port + 2) != stopped, WITHIN_S, "it lives again")
        process.signal(signal.SIGTERM)
        assert process.ends() == 0
        listening.join()

    assert sent.count(["READY=1", "STATUS=2 of 2 workers serve clients"]) == 1
    assert ["WATCHDOG=1"] in sent


def test_they_go_to_the_background_together(tmp_path: Path) -> None:
    port = free_port(2)
    options = ("--daemonize", "yes", "--pidfile", "disque.pid", "--logfile", "disque.log")
    place = ("--port", str(port), "--bind", "127.0.0.1", "--workers", "2")

    status, output = run(tmp_path, "server", *place, *options)

    assert (status, output) == (0, "")
    supervisor = int((tmp_path / "disque.pid").read_text())
    assert supervisor not in {pid_at(port + 1), pid_at(port + 2)}
    os.kill(supervisor, signal.SIGTERM)
    eventually(lambda: not (tmp_path / "disque.pid").exists(), WITHIN_S, "the pid file is gone")


def test_under_tls_they_share_that_port_and_find_each_other_too(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    authority = Authority(tmp_path, "ca")
    own, clients = authority.sign(), authority.sign()
    port = free_port(2)
    # Names of files count from `dir`, though each worker has a directory of its own.
    options = (
        *("--port", "0", "--tls-port", str(port), "--bind", "127.0.0.1", "--workers", "2"),
        *("--tls-cert-file", os.path.relpath(own.cert, tmp_path)),
        *("--tls-key-file", os.path.relpath(own.key, tmp_path)),
        *("--tls-ca-cert-file", os.path.relpath(authority.file, tmp_path), "--tls-cluster", "yes"),
    )
    secrets = ("--cacert", authority.file, "--cert", clients.cert, "--key", clients.key)

    with running(tmp_path, "server", *options) as process:
        process.says(READY)
        asked = ("ADDJOB", "q", "body", "5000", "REPLICATE", "2")
        assert cli.main(["--tls", "-p", str(port), *secrets, *asked]) == 0
        assert cli.main(["--tls", "-p", str(port + 2), *secrets, "PING"]) == 0

    assert capfdbinary.readouterr().out.startswith(b"D-")
