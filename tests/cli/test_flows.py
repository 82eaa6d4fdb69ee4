"""`disque-trio flows`, of flows that no worker runs."""

import json
from typing import Any

import pytest
import trio

from disque_trio.__main__ import main
from disque_trio.testing.server.kit import Server
from disque_trio.worker import App, Codec, EnqueuedFlow

NOBODY = "D-00000000-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"


class Secret(Codec):
    name = "secret"

    def encode(self, body: bytes) -> bytes:
        return body[::-1]

    def decode(self, body: bytes, most: int) -> bytes:  # noqa: ARG002
        return body[::-1]


def added(server: Server, **options: Any) -> EnqueuedFlow:
    """A member that another one waits for."""
    app = App[None](server.url, **options)

    @app.task(name="cut", queue="film")
    async def cut(film: str) -> None: ...

    flow = app.flow()
    first = flow.add(cut.call("sea"))
    flow.add(cut.call("sky"), after=[first])

    async def add() -> EnqueuedFlow:
        async with app:
            return await flow.enqueue()

    return trio.run(add)


@pytest.fixture
def asked(disque_server: Server, capsys: pytest.CaptureFixture[str]) -> Any:
    def ask(*words: str, status: int = 0) -> tuple[str, str]:
        assert main(["flows", *words, "--url", disque_server.url]) == status
        out, err = capsys.readouterr()
        return out, err

    return ask


def test_flows_are_listed_with_the_states_of_their_members(
    disque_server: Server, asked: Any
) -> None:
    flow = added(disque_server)

    out, err = asked("list")

    assert [line.split()[:3] for line in out.splitlines()] == [
        ["ID", "STATE", "QUEUE"],
        [flow.id, "running", "film"],
    ]
    assert out.rstrip().endswith("2 pending")
    assert err == ""
    [row] = json.loads(asked("list", "--json")[0])
    assert (row["id"], row["size"], row["counts"]) == (flow.id, 2, {"pending": 2})


def test_flows_that_are_not_listed_are_counted(disque_server: Server, asked: Any) -> None:
    added(disque_server, codec=Secret())

    _, err = asked("list")

    assert err == "disque-trio flows: 1 flow is not listed: codecs of its app have encoded it\n"


def test_a_flow_is_shown_with_its_members(disque_server: Server, asked: Any) -> None:
    flow = added(disque_server)

    out, _ = asked("show", flow.id)

    assert "2 pending" in out
    assert [line.split()[:3] for line in out.splitlines()[-2:]] == [
        ["0", "cut", "pending"],
        ["1", "cut", "pending"],
    ]
    assert json.loads(asked("show", flow.id, "--json")[0])["members"][1]["after"] == [[0, 0]]


def test_a_flow_is_cancelled_once_somebody_is_sure(disque_server: Server, asked: Any) -> None:
    flow = added(disque_server)

    out, _ = asked("cancel", flow.id, "--yes")

    assert "the flow is cancelled" in out
    assert json.loads(asked("show", flow.id, "--json")[0])["state"] == "cancelled"


def test_what_cannot_be_done_is_told_with_the_reason(disque_server: Server, asked: Any) -> None:
    flow = added(disque_server)

    assert f"no member of flow {flow.id} is dead" in asked("retry", flow.id, status=1)[1]
    assert "it has ended, or was never added" in asked("show", NOBODY, status=1)[1]
    assert "it has ended, or was never added" in asked("cancel", NOBODY, "--yes", status=1)[1]
