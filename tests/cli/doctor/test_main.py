import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from disque_trio.__main__ import main
from disque_trio.cli.doctor import PROGRAM, machine
from disque_trio.client.address import Address, Cluster
from disque_trio.observe.finding import note, problem, warning
from disque_trio.statemachine.base import Failure
from disque_trio.terminal.options import parse
from tests.client.fakenode import fake_node
from tests.observe.test_survey import ME, answers


@pytest.fixture(autouse=True)
def _a_machine_without_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "judge", lambda: iter(()))


@pytest.fixture
def port() -> Iterator[str]:
    """A node that is up, though its bus is not."""
    with fake_node(answers()) as node:
        yield str(node.port)


def test_what_is_wrong_is_told_worst_first(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "-p", port]) == 2

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"problem  {ME[:8]} (127.0.0.1:{port}): its bus port")
    assert lines[1].endswith("refused")
    assert lines[2].startswith("         → ")
    assert all(len(line) <= 80 for line in lines)
    assert lines[-1] == "1 of 1 node answers; 1 problem, 2 warnings"


def test_programs_get_an_object(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "-p", port, "--json"]) == 2

    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "problems"
    assert told["nodes"][0]["under_replicated_jobs"] == 2
    assert told["findings"][0]["level"] == "problem"


def test_a_health_check_asks_this_node_alone(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "-p", port, "--quiet"]) == 0
    assert main(["doctor", "-p", "1", "--quiet"]) == 1
    assert capsys.readouterr().out == ""


def test_a_health_check_of_a_url_asks_its_first_node_alone(port: str) -> None:
    assert main(["doctor", "--url", f"disque://127.0.0.1:{port},127.0.0.1:1", "--quiet"]) == 0
    assert main(["doctor", "--url", f"disque://127.0.0.1:1,127.0.0.1:{port}", "--quiet"]) == 1


def test_a_health_check_does_not_follow_the_url_of_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DISQUE_URL", "disque://:pw@10.0.0.1:7712,10.0.0.2")
    options = parse(PROGRAM, "disque-trio doctor", ["--quiet"], {}).options

    assert options.own_node == Cluster([Address()])
    assert len(options.cluster.seeds) == 2


def test_a_node_that_loads_its_jobs_does_not_serve_yet() -> None:
    with fake_node(answers(INFO=[b"loading:1\r\n"])) as node:
        assert main(["doctor", "-p", str(node.port), "--quiet"]) == 1


@pytest.mark.parametrize("state", ["aof_last_write_status:err", "aof_file_status:removed"])
def test_a_node_that_cannot_write_its_file_does_not_serve(state: str) -> None:
    with fake_node(answers(INFO=[f"{state}\r\n".encode()])) as node:
        assert main(["doctor", "-p", str(node.port), "--quiet"]) == 1


def test_a_node_that_requires_a_password_counts_as_serving() -> None:
    with fake_node(answers(TIME=[Failure(b"NOAUTH Authentication required.")])) as node:
        assert main(["doctor", "-p", str(node.port), "--quiet"]) == 0


@pytest.mark.parametrize(
    ("finding", "status"), [(None, 0), (note("a", "b"), 0), (warning("a", "b", "c"), 1),
                            (problem("a", "b", "c"), 2)],
)  # fmt: skip
def test_the_exit_status_is_that_of_the_worst(
    monkeypatch: pytest.MonkeyPatch, finding: object, status: int
) -> None:
    found = [] if finding is None else [finding]
    monkeypatch.setattr(machine, "judge_file", lambda *_, **__: iter(found))

    assert main(["doctor", "--config", "disque.conf"]) == status
    assert main(["doctor", "--config", "disque.conf", "--quiet"]) == (status == 2)


def test_only_the_file_is_looked_at_when_no_node_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "disque.conf"
    file.write_text("port seven\n")

    assert main(["doctor", "--config", str(file)]) == 2
    assert "line 1" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--port", "0"], ["-t", "0"], ["-t", "soon"], ["--bogus"]])
def test_a_command_line_that_makes_no_sense_is_refused(words: list[str]) -> None:
    assert main(["doctor", *words]) == 2


def test_help_tells_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--help"]) == 0
    assert "exit code: 0 all is well; 1 warnings; 2 problems" in capsys.readouterr().out
