"""`disque-trio server` as a process: starting, refusing to start, ending, starting anew."""

import json
import os
import resource
import signal
import socket
import sys
from pathlib import Path

import pytest

from disque_trio import __version__
from disque_trio.__main__ import main
from disque_trio.statemachine.form import FORM
from tests.cluster.processes import BUS_OFFSET, eventually, free_port
from tests.serving.process import WITHIN_S, Talk, run, running, server


def test_sigterm_ends_it_with_status_0(tmp_path: Path) -> None:
    with server(tmp_path) as (process, port), Talk(port) as talk:
        assert talk.ask("PING") == b"+PONG\r\n"

        process.signal(signal.SIGTERM)

        assert process.ends() == 0
        assert talk.socket.recv(1) == b""
        assert "stopping" in process.text()
        assert "reason=SIGTERM" in process.text()
        assert "Traceback" not in process.text()


def test_ctrl_c_ends_it_with_status_0(tmp_path: Path) -> None:
    with server(tmp_path) as (process, _):
        process.signal(signal.SIGINT)

        assert process.ends() == 0


def test_a_second_ctrl_c_ends_it_at_once_with_status_1(tmp_path: Path) -> None:
    with server(tmp_path) as (process, port), Talk(port) as talk:
        # A client that does not read keeps it from ending at once.
        body = b"x" * 9_000_000
        talk.socket.sendall(b"*2\r\n$4\r\nPING\r\n$%d\r\n%b\r\n" % (len(body), body))
        with Talk(port) as other:
            eventually(
                lambda: b" oll=1 " in other.ask("CLIENT LIST"), WITHIN_S, "a reply is unsent"
            )

        process.signal(signal.SIGINT)
        process.says("stopping")
        process.signal(signal.SIGINT)

        assert process.ends() == 1


def test_shutdown_closes_the_connection_and_ends_it(tmp_path: Path) -> None:
    with server(tmp_path) as (process, port), Talk(port) as talk:
        assert talk.ask("SHUTDOWN") == b""

        assert process.ends() == 0


def test_a_node_keeps_its_identity(tmp_path: Path) -> None:
    names = []
    for _ in range(2):
        with server(tmp_path) as (process, port), Talk(port) as talk:
            names.append(talk.ask("CLUSTER MYID"))
            process.signal(signal.SIGTERM)
            process.ends()

    assert names[0] == names[1]
    assert (tmp_path / "nodes.conf").read_bytes().split()[0] in names[0]


def test_a_restart_keeps_process_port_and_identity(tmp_path: Path) -> None:
    with server(tmp_path) as (process, port):
        with Talk(port) as talk:
            name = talk.ask("CLUSTER MYID")
            assert talk.ask("ADDJOB q body 0").startswith(b"+D-")
            assert talk.ask("DEBUG RESTART 10") == b""

        eventually(lambda: process.text().count("node started") == 2, WITHIN_S, "it starts again")

        with Talk(port) as talk:
            assert talk.ask("CLUSTER MYID") == name
            assert b"process_id:%d\r\n" % process.popen.pid in talk.ask("INFO server")
            assert talk.ask("QLEN q") == b":0\r\n"
        process.signal(signal.SIGTERM)
        assert process.ends() == 0


def test_two_nodes_cannot_share_a_directory(tmp_path: Path) -> None:
    with server(tmp_path) as (_, port):
        status, output = run(tmp_path, "server", "--port", str(free_port()), "--bind", "127.0.0.1")

        assert status == 1
        assert "nodes.conf is in use by another node" in output
        assert "Traceback" not in output
        with Talk(port) as talk:
            assert talk.ask("PING") == b"+PONG\r\n"


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    port = free_port() + BUS_OFFSET
    with socket.create_server(("127.0.0.1", port)):
        bus_status, bus_output = run(
            tmp_path, "server", "--port", str(port - BUS_OFFSET), "--bind", "127.0.0.1"
        )

    with server(tmp_path) as (_, own):
        status, output = run(tmp_path, "server", "--port", str(own), "--bind", "127.0.0.1")

    assert (bus_status, status) == (1, 1)
    assert f"bus port {port}: Address already in use" in bus_output
    assert f"port {own}: Address already in use" in output


def test_a_port_without_room_for_the_bus_is_refused(tmp_path: Path) -> None:
    status, output = run(tmp_path, "server", "--port", "55536")

    assert status == 1
    assert "FATAL CONFIG FILE ERROR" in output
    assert "55536" in output


def test_nothing_to_listen_on_is_refused(tmp_path: Path) -> None:
    status, output = run(tmp_path, "server", "--port", "0")

    assert status == 1
    assert "nothing to listen on" in output


@pytest.mark.parametrize("more", [(), ("--workers", "2")])
def test_a_multiplexing_api_that_this_system_lacks_is_refused(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    port = str(free_port(2))

    status, text = run(tmp_path, "server", "--port", port, "--multiplexing-api", "kqueue", *more)

    assert status == 1
    assert text == (
        "disque-trio: multiplexing-api kqueue: this system has no kqueue; it has epoll and tasks: "
        "name one of these, or leave the choice to 'auto'\n"
    )


def test_the_log_and_info_say_how_it_waits_for_sockets(tmp_path: Path) -> None:
    with server(tmp_path, "--multiplexing-api", "tasks") as (process, port), Talk(port) as talk:
        process.says("multiplexing_api=tasks")
        assert b"\r\nmultiplexing_api:tasks\r\n" in talk.ask("INFO server")
        assert b"$5\r\ntasks\r\n" in talk.ask("CONFIG GET multiplexing-api")
        assert talk.ask("CONFIG SET multiplexing-api epoll").startswith(b"-ERR Unsupported CONFIG")


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    status, output = run(tmp_path, "server", "--port", "0", "--logfile", "no/where.log")

    assert status == 1
    assert "cannot write the log file 'no/where.log': No such file or directory" in output
    assert "Traceback" not in output


def test_a_secret_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    status, output = run(tmp_path, "server", "--requirepass-file", "nowhere")

    assert status == 1
    assert "requirepass-file nowhere: No such file or directory" in output


def test_a_password_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("hush-hush\n")
    (tmp_path / "password").chmod(0o644)

    with server(tmp_path, "--requirepass-file", "password") as (process, port), Talk(port) as talk:
        assert talk.ask("PING").startswith(b"-NOAUTH")
        assert talk.ask("AUTH hush-hush") == b"+OK\r\n"
        assert talk.ask("PING") == b"+PONG\r\n"
        assert b"hush" not in talk.ask("CONFIG GET *")
        assert talk.ask("CONFIG SET timeout 5") == b"+OK\r\n"
        process.says("setting changed")
        assert "chmod 600" in process.text()
        assert "hush" not in process.text()


def test_a_node_with_a_socket_alone_has_no_bus(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")

    with running(tmp_path, "server", "--port", "0", "--unixsocket", path) as process:
        process.says("node started")
        with Talk(path) as talk:
            assert talk.ask("PING") == b"+PONG\r\n"
        with socket.socket() as other:
            other.bind(("0.0.0.0", 10_000))
        assert "bus_port=none" in process.text()


def test_an_address_that_is_not_here_is_named(tmp_path: Path) -> None:
    status, output = run(tmp_path, "server", "--port", str(free_port()), "--bind", "192.0.2.1")

    assert status == 1
    assert "cannot listen on 192.0.2.1" in output


def test_a_mistake_in_the_settings_is_shown(tmp_path: Path) -> None:
    (tmp_path / "disque.conf").write_text("# settings\nmaxmemory lots\n")

    status, output = run(tmp_path, "server", "disque.conf")

    assert status == 1
    assert "*** FATAL CONFIG FILE ERROR ***" in output
    assert "at line 2" in output
    assert ">>> 'maxmemory lots'" in output


def test_a_configuration_from_standard_input_cannot_be_read_again(tmp_path: Path) -> None:
    with server(tmp_path, first="-") as (_, port), Talk(port) as talk:
        answer = talk.ask("DEBUG RESTART")

        assert b"could not be restarted: its configuration came from standard input" in answer
        assert talk.ask("PING") == b"+PONG\r\n"


def test_a_damaged_nodes_conf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nodes.conf").write_text("nonsense\n")

    status, output = run(tmp_path, "server", "--port", str(free_port()), "--bind", "127.0.0.1")

    assert status == 1
    assert "nodes.conf: line 1" in output
    assert (tmp_path / "nodes.conf").read_text() == "nonsense\n"


def test_it_listens_on_several_addresses_and_a_path(tmp_path: Path) -> None:
    port = free_port()
    path = str(tmp_path / "disque.sock")
    options = ("--bind", "127.0.0.1", "127.0.0.2", "--unixsocket", path, "--unixsocketperm", "700")
    with server(tmp_path, *options, port=port) as (process, _):
        with Talk(port) as talk, Talk(path) as local:
            assert talk.ask("PING") == b"+PONG\r\n"
            assert local.ask("PING") == b"+PONG\r\n"
            assert os.stat(path).st_mode & 0o777 == 0o700
        with socket.create_connection(("127.0.0.2", port), WITHIN_S) as second:
            second.sendall(b"PING\r\n")
            assert second.recv(100) == b"+PONG\r\n"

        process.signal(signal.SIGTERM)

        assert process.ends() == 0
        assert not os.path.exists(path)


def test_a_path_alone_is_enough_and_a_stale_one_no_hindrance(tmp_path: Path) -> None:
    path = str(tmp_path / "disque.sock")
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(path)
    with server(tmp_path, "--port", "0", "--unixsocket", path), Talk(path) as talk:
        assert talk.ask("PING") == b"+PONG\r\n"


def test_a_configuration_file_and_options_go_together(tmp_path: Path) -> None:
    (tmp_path / "disque.conf").write_text("maxclients 77\ntimeout 33\n")
    port = free_port()
    place = ("--port", str(port), "--bind", "127.0.0.1", "--timeout", "44")
    with running(tmp_path, "server", "disque.conf", *place) as process:
        process.says("node started")
        with Talk(port) as talk:
            assert talk.ask("CONFIG GET maxclients") == b"*2\r\n$10\r\nmaxclients\r\n$2\r\n77\r\n"
            assert talk.ask("CONFIG GET timeout") == b"*2\r\n$7\r\ntimeout\r\n$2\r\n44\r\n"
            assert talk.ask("CONFIG SET timeout 55") == b"+OK\r\n"
            assert talk.ask("CONFIG REWRITE") == b"+OK\r\n"
    assert "timeout 55\n" in (tmp_path / "disque.conf").read_text()


def test_json_lines_go_to_a_log_file_that_may_be_moved_away(tmp_path: Path) -> None:
    log, port = tmp_path / "disque.log", free_port()
    options = ("--log-format", "json", "--logfile", str(log))
    place = ("--port", str(port), "--bind", "127.0.0.1")
    with running(tmp_path, "server", *place, *options) as process:
        eventually(lambda: log.exists() and log.read_text(), WITHIN_S, "a log file")
        os.rename(log, tmp_path / "old.log")
        with Talk(port) as talk:
            assert talk.ask("CONFIG SET maxclients 321") == b"+OK\r\n"
        eventually(log.exists, WITHIN_S, "a new log file")
        process.signal(signal.SIGTERM)
        assert process.ends() == 0
        assert process.text() == ""

    first = json.loads((tmp_path / "old.log").read_text().splitlines()[0])
    assert (first["event"], first["level"], first["port"]) == ("node started", "notice", port)
    changed = json.loads(log.read_text().splitlines()[0])
    assert (changed["event"], changed["value"]) == ("setting changed", 321)


@pytest.mark.slow
def test_out_of_descriptors_it_waits_until_some_are_free(tmp_path: Path) -> None:
    with server(tmp_path) as (process, port), Talk(port) as talk:
        pid = process.popen.pid
        in_use = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (in_use + 3, in_use + 3))

        others = [Talk(port) for _ in range(10)]
        process.says("cannot accept clients")
        before = _cpu_s(pid)
        for _ in range(5):
            assert talk.ask("GETJOB TIMEOUT 100 FROM q") == b"*-1\r\n"
        assert _cpu_s(pid) - before < 0.25
        for other in others:
            other.socket.close()

        with Talk(port) as again:
            assert again.ask("PING") == b"+PONG\r\n"


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_it_goes_to_the_background(tmp_path: Path) -> None:
    port = free_port()
    pid_file = tmp_path / "disque.pid"
    options = ("--daemonize", "yes", "--pidfile", str(pid_file), "--logfile", "disque.log")

    status, output = run(tmp_path, "server", "--port", str(port), "--bind", "127.0.0.1", *options)

    assert (status, output) == (0, "")
    with Talk(port) as talk:
        assert b"process_id:%d\r\n" % int(pid_file.read_text()) in talk.ask("INFO server")
        assert talk.ask("SHUTDOWN") == b""
    eventually(lambda: not pid_file.exists(), WITHIN_S, "the pid file is gone")
    assert "Traceback" not in (tmp_path / "disque.log").read_text()


def test_what_keeps_it_from_the_background_is_said_on_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "nodes.conf.new").mkdir()
    place = ("--port", str(free_port()), "--bind", "127.0.0.1")

    status, output = run(tmp_path, "server", *place, "--daemonize", "yes")

    assert status == 1
    assert "cannot write the node table" in output


@pytest.mark.parametrize("workers", [1, 2])
def test_a_pid_file_that_cannot_be_written_keeps_it_from_starting(
    tmp_path: Path, workers: int
) -> None:
    place = ("--port", str(free_port()), "--bind", "127.0.0.1", "--workers", str(workers))

    status, output = run(
        tmp_path, "server", *place, "--daemonize", "yes", "--pidfile", "run/disque.pid"
    )

    assert status == 1
    assert output == (
        "disque-trio: cannot write the pid file 'run/disque.pid': the directory run does not "
        "exist; make the directory, let this user write there, or give another 'pidfile'\n"
    )
    assert not list(tmp_path.rglob("nodes*.conf"))


@pytest.mark.parametrize("option", ["-v", "--version"])
def test_the_version_is_one_line(tmp_path: Path, option: str) -> None:
    status, output = run(tmp_path, option)

    assert status == 0
    assert output.startswith(f"disque-trio {__version__} ")
    assert output.endswith(f", {FORM})\n")
    assert output.count("\n") == 1


def test_people_are_told_how_to_get_the_compiled_form(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    with pytest.raises(SystemExit):
        main(["--version"])

    is_hinted = "DISQUE_FORM=compiled pip install" in capsys.readouterr().out
    assert is_hinted == (FORM == "pure")


def test_help_names_the_commands(tmp_path: Path) -> None:
    status, output = run(tmp_path)
    server_status, server_help = run(tmp_path, "server", "--help")

    assert (status, server_status) == (0, 0)
    assert all(f"\n  {command} " in output for command in ("server", "up", "cli"))
    assert "--DIRECTIVE VALUE" in server_help


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("serve", "invalid choice: 'serve' is not a command; did you mean 'server'?"),
        ("client -p 7711", "invalid choice: 'client' is a command of a node: disque-trio cli"),
        ("ADDJOB mail body 0", "is a command of a node: disque-trio cli ADDJOB mail body 0"),
        ("xyzzy", "invalid choice: 'xyzzy' is not a command; there are server, up, cli,"),
        ("-p 7711 PING", "unrecognized option -p: options follow a command: disque-trio cli -p 77"),
    ],
)
def test_an_unknown_command_is_refused_and_what_was_meant_is_told(
    words: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words.split())

    assert stop.value.code == 2
    assert hint in capsys.readouterr().err
