"""`disque-trio top` for other programs, against real nodes."""

import json
import sys

import pytest

from disque_trio.__main__ import main
from disque_trio.client import BlockingClient
from disque_trio.testing.server.kit import Server


def top(server: Server, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["top", "--url", server.url, "--interval", "0.2", "--once", *words]) == 0
    return capsys.readouterr().out


def test_json_has_what_nodes_and_queues_do(
    disque_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    with BlockingClient(disque_server.url) as client:
        for number in range(3):
            client.addjob("mail", str(number))
        client.addjob("sms", "body")
        client.addjob("disque-trio.control.1", "of the library, which is not shown")
    view = json.loads(top(disque_server, capsys, "--json"))

    assert [(each["name"], each["length"]) for each in view["queues"]] == [("mail", 3), ("sms", 1)]
    assert {each["in_rate"] for each in view["queues"]} == {0.0}
    assert sum(each["totals"]["jobs_added"] for each in view["nodes"]) >= 4
    assert all(set(each["rates"]) == set(each["totals"]) for each in view["nodes"])
    assert view["unreached"] == {}
    assert view["seconds"] > 0.1


def test_text_is_for_people(disque_server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    with BlockingClient(disque_server.url) as client:
        client.addjob("mail", "body")
        client.pause("mail", "out")
    text = top(disque_server, capsys)

    assert "1 queue, 1 queued job" in text
    assert "ADDED/s" in text
    assert any(line.startswith("mail ") and "out at" in line for line in text.splitlines())


def test_without_a_terminal_it_prints_once(
    disque_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["top", "--url", disque_server.url, "--interval", "0.1"]) == 0
    assert capsys.readouterr().out.count("ADDED/s") == 1


def test_no_node_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--url", "disque://127.0.0.1:1", "--once"]) == 1
    assert capsys.readouterr().err.startswith("disque-trio top: ")


@pytest.mark.parametrize("interval", ["0", "x", "nan", "1e9"])
def test_an_interval_that_does_not_do_is_refused(
    interval: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["top", "--interval", interval]) == 2
    assert f"'{interval}' is not a number of seconds" in capsys.readouterr().err


def test_without_textual_there_is_advice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "disque_trio.cli.top.screen", raising=False)
    monkeypatch.setitem(sys.modules, "textual.app", None)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    assert main(["top"]) == 1
    assert "pip install 'disque-trio[top]'" in capsys.readouterr().err
