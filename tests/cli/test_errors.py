"""Every command with `--json` reports why it has failed as JSON, too."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import anyio.lowlevel
import attrs
import pytest

from disque_trio.__main__ import main
from disque_trio.cli.frame import FAILED, INTERRUPTED, PARTIAL, USAGE, NotDoneError, run
from disque_trio.cli.operating import frame
from disque_trio.client import BlockingClient
from disque_trio.client.errors import ConnectionFailedError
from disque_trio.observe.operations import OPERATIONS
from disque_trio.observe.operations.operation import Operation
from disque_trio.programs import COMMANDS
from disque_trio.terminal.options import Command, Family, Option, Program, UsageError, options_of
from disque_trio.testing.server.kit import Server
from disque_trio.worker.operating.plans import Outcome, Plan
from tests.observe.arguments import ONE_OF

NOBODY = "127.0.0.1:1"
JOB = "D-00000000-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
JSON = "--json"
NEEDED = {key: [f"--{name}", "60"] for key, name in ONE_OF.items()}
"""Options without which an operation asks no node."""
OF_NODES = ("jobs", "queues", "workers", "nodes", "flows", "schedules")


def commands(program: Program, path: tuple[str, ...]) -> Iterator[tuple[str, Command[Any]]]:
    if isinstance(program, Family):
        for name, each in program.commands.items():
            yield from commands(each, (*path, name))
    else:
        yield " ".join(path), program


def with_json() -> dict[str, Command[Any]]:
    programs = {
        name: getattr(import_module(command.module), "PROGRAM", None)
        for name, command in COMMANDS.items()
    }
    return {
        name: each
        for first, program in programs.items()
        if program is not None
        for name, each in commands(program, (first,))
        if any(JSON in option.names for _, option in options_of(each.record))
    }


def word_of(field: str, option: Option) -> str:
    """What stands for an argument that is needed."""
    if option.kind.words:
        return option.kind.words[0]
    if field == "address":
        return "10.0.0.1:7711"
    return JOB if field == "id" else "1"


def placed(command: Command[Any]) -> list[str]:
    """Words for its arguments that must be given."""
    fields = attrs.fields_dict(command.record)
    return [
        word_of(field, each)
        for field, each in options_of(command.record)
        if not each.names and (each.nargs == "+" or fields[field].default is None)
    ]


def failing(command: Command[Any], error: Exception) -> Command[Any]:
    """The command, which cannot do it."""

    def run(_: object) -> int:
        raise error

    return attrs.evolve(command, run=run)


ERRORS = {
    NotDoneError("it is gone"): FAILED,
    ConnectionFailedError("it is gone"): FAILED,
    UsageError("it is gone"): USAGE,
    FileNotFoundError(2, "it is gone", "it"): USAGE,
}
ASKING = [name for name in with_json() if name.partition(" ")[0] in OF_NODES]


def test_each_command_has_json_for_what_it_cannot_do(capsys: pytest.CaptureFixture[str]) -> None:
    found = with_json()

    assert {"cli", "doctor", "explain", "top", "aof check", "sim run"} < found.keys()
    for name, command in found.items():
        for error, status in ERRORS.items():
            words = [*placed(command), *NEEDED.get(name, []), JSON]
            assert run(name, failing(command, error), words) == status
            out, err = capsys.readouterr()
            assert "it is gone" in json.loads(out)["error"]
            assert err.startswith(f"disque-trio {name}: ")


def test_without_json_the_output_stays_empty(capsys: pytest.CaptureFixture[str]) -> None:
    command = failing(with_json()["queues list"], NotDoneError("it is gone"))

    assert run("queues", command, []) == FAILED
    assert capsys.readouterr() == ("", "disque-trio queues: it is gone\n")


@pytest.mark.parametrize("name", ASKING)
def test_without_a_node_a_program_reads_why(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = with_json()[name]
    words = [*name.split(), *placed(command), *NEEDED.get(name, []), "--url", f"disque://{NOBODY}"]

    assert main([*words, JSON]) == FAILED

    out, err = capsys.readouterr()
    assert f"Could not connect to Disque at {NOBODY}" in json.loads(out)["error"]
    assert "not heard" not in err
    assert err == f"disque-trio {name.split(maxsplit=1)[0]}: {json.loads(out)['error']}\n"


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["queues", "list", "--help"]])
def test_a_reader_that_closes_the_pipe_gets_no_traceback(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as out:
        done = subprocess.run(
            [sys.executable, "-u", "-m", "disque_trio", *words],
            stdout=out, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip

    assert done.stderr == b""
    assert done.returncode in (0, USAGE)


def test_a_node_that_hangs_is_waited_for_once_and_named(
    disque_server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame, "_ANSWER_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        name = f"127.0.0.1:{mute.getsockname()[1]}"
        url = f"{disque_server.url},{name}"
        began = time.monotonic()
        assert main(["queues", "pause", "mail", "--url", url, JSON]) == PARTIAL
        took = time.monotonic() - began

    out, err = capsys.readouterr()
    [line] = json.loads(out)["unasked"]
    assert line == f"{name} is left out: no answer within 0.5 s"
    assert err == ""
    assert took < 5


LEFT_OUT = "n2 is left out: no answer within 3 s"


def partly(operation: Operation) -> Plan:
    async def run(outcome: Outcome, _report: object) -> None:
        outcome.says.append("n1: done")
        await anyio.lowlevel.checkpoint()

    return Plan(target=operation.key, says=["all is done", LEFT_OUT], unasked=[LEFT_OUT], run=run)


@pytest.mark.parametrize("key", OPERATIONS)
def test_an_operation_that_leaves_a_node_out_names_it_and_exits_with_three(
    key: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def planned(self: Operation, _client: object, _args: object) -> Plan:
        await anyio.lowlevel.checkpoint()
        return partly(self)

    monkeypatch.setattr(Operation, "planned", planned)
    words = [*key.split(), *placed(with_json()[key]), *NEEDED.get(key, [])]
    words += ["--url", f"disque://{NOBODY}"]

    assert main([*words, "--yes"]) == PARTIAL
    assert capsys.readouterr() == ("n1: done\n", f"disque-trio {key}: {LEFT_OUT}\n")
    assert main([*words, "--yes", JSON]) == PARTIAL
    assert json.loads(capsys.readouterr().out)["unasked"] == [LEFT_OUT]
    assert main([*words, "--plan"]) == PARTIAL
    assert capsys.readouterr() == (f"all is done\n{LEFT_OUT}\n", "")
    assert main([*words, "--plan", JSON]) == PARTIAL
    assert json.loads(capsys.readouterr().out)["unasked"] == [LEFT_OUT]


@pytest.mark.parametrize(
    "name",
    ["queues list", "jobs list", "jobs dead", "jobs ended", "workers list", "workers tasks",
     "schedules list", "flows list"],
)  # fmt: skip
def test_a_list_that_lacks_what_a_node_knows_exits_with_three(
    name: str,
    disque_server: Server,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frame, "_ANSWER_S", 0.5)
    assert main([*name.split(), "--url", disque_server.url]) == 0
    with socket.create_server(("127.0.0.1", 0)) as mute:
        silent = f"127.0.0.1:{mute.getsockname()[1]}"
        assert main([*name.split(), "--url", f"{disque_server.url},{silent}"]) == PARTIAL

    assert f"the data of {silent} is missing: no answer within 0.5 s" in capsys.readouterr().err


def test_of_several_jobs_those_that_can_be_are_ended(
    disque_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    with BlockingClient(disque_server.url) as client:
        ids = [client.addjob("several", "x") for _ in range(2)]

    words = ["jobs", "acknowledge", ids[0], JOB, ids[1], "--url", disque_server.url, JSON]
    assert main(words) == FAILED

    outcome = json.loads(capsys.readouterr().out)
    assert outcome["count"] == 2
    [line] = outcome["failed"]
    assert line.startswith(f"no node that answers has {JOB}")


def test_a_list_that_is_cut_says_so(
    disque_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    with BlockingClient(disque_server.url) as client:
        for _ in range(3):
            client.addjob("cut", "x")
    words = ["jobs", "list", "--queue", "cut", "--url", disque_server.url, "--limit"]

    assert (main([*words, "2"]), main([*words, "3"])) == (0, 0)

    [line] = capsys.readouterr().err.splitlines()
    assert line == "disque-trio jobs list: the list may be incomplete: raise --limit"


def test_a_plan_is_json_as_well(disque_server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queues", "pause", "mail", "--url", disque_server.url, "--plan", JSON]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["says"][0] == 'queue "mail" accepts no jobs and delivers none at 1 node'
    assert told["count"] == 0


def test_ctrl_c_while_a_command_is_imported_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("disque_trio.__main__.import_module", interrupted)

    assert main(["doctor"]) == INTERRUPTED
    assert capsys.readouterr().err == ""
