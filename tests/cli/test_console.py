"""`disque-trio console`: the console without a node of its own."""

import http.client
import signal
from pathlib import Path

import pytest
import trio

from disque_trio.__main__ import main
from disque_trio.testing.server.kit import Server
from tests.cluster.processes import free_port
from tests.serving.process import running
from tests.sim.cli.files import SMALL, scenario_file
from tests.web.browser import Console


def status(port: int, path: str, **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_it_shows_a_cluster_until_ctrl_c(disque_server: Server, tmp_path: Path) -> None:
    port, node = free_port(), disque_server.url.removeprefix("disque://")
    with running(tmp_path, "console", node, "--port", str(port), "--read-only") as process:
        process.says(f"Console: http://127.0.0.1:{port}/")
        assert status(port, "/readyz") == 200
        assert status(port, "/") == 200
        assert status(port, "/metrics") == 404
        assert status(port, "/", Host="evil.example") == 421

        async def look() -> None:
            here = Console([], port, None)  # type: ignore[arg-type]
            async with here.browser() as browser:
                assert (await browser.hear("hello"))["operations"] == []
                assert (await browser.see("overview"))["nodes"][0]["state"] == "up"

        trio.run(look)
        process.signal(signal.SIGINT)

        assert process.ends() == 0
        assert "Traceback" not in process.text()


def test_with_a_password_browsers_log_in(tmp_path: Path) -> None:
    port, password = free_port(), tmp_path / "password"
    password.write_text("sesame\n")
    password.chmod(0o600)
    with running(
        tmp_path, "console", "127.0.0.1:1", "--port", str(port), "--password-file", str(password)
    ) as process:
        process.says("Console: ")
        assert status(port, "/") == 401
        assert status(port, "/", Authorization="Bearer sesame") == 200

        process.signal(signal.SIGINT)
        assert process.ends() == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--port", "0"], "'0' is not a port from 1 to 65535"),
        (["somewhere:x"], "is not host:port"),
        (["--password-file", "nowhere"], "nowhere: No such file"),
        (["--colour"], "unrecognized arguments"),
        (["--scenario", "nowhere.toml"], "cannot read nowhere.toml"),
        (["--scenario", "a.toml", "--trace", "b.jsonl"], "not both"),
        (["--sandbox", "--trace", "b.jsonl"], "not both"),
        (["--sandbox", "--nodes", "0"], "'0' is not a whole number, 1 or more"),
        (["--sandbox", "--seed", "-1"], "'-1' is not a whole number, 0 or more"),
        (["--nodes", "3"], "--nodes needs --sandbox"),
        (["--seed", "3"], "--seed needs --scenario or --sandbox"),
    ],
)
def test_what_cannot_be_is_refused(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["console", *words]) == 2
    assert told in capsys.readouterr().err


def test_a_sandbox_is_steered_by_its_socket_and_asks_no_cluster(tmp_path: Path) -> None:
    port = free_port()
    words = ("console", "--sandbox", "--nodes", "5", "--seed", "7", "--port", str(port))
    with running(tmp_path, *words) as process:
        process.says("Console: ")

        async def look() -> None:
            async with Console([], port, None).browser() as browser:  # type: ignore[arg-type]
                hello = await browser.hear("hello")
                assert hello["topics"] == ["sandbox"]
                assert [each["key"] for each in hello["operations"]] == ["steer"]
                assert len((await browser.see("sandbox"))["nodes"]) == 5
                await browser.say(
                    t="do", id=7, operation="steer", args={"operation": "kill", "node": "n5"}
                )
                assert (await browser.hear("done", 7))["says"] == ["n5 is killed"]
                await browser.say(
                    t="do", id=8, operation="steer", args={"operation": "kill", "node": "n5"}
                )
                assert "restart it first" in (await browser.hear("error", 8))["says"]
                await browser.say(t="do", id=9, operation="steer", args={})
                assert (await browser.hear("error", 9))["says"] == "'operation' is missing"

        trio.run(look)
        assert status(port, "/sandbox/operations.py") == 200
        assert status(port, "/sandbox/passwords") == 404
        process.signal(signal.SIGINT)
        assert process.ends() == 0
        assert "Traceback" not in process.text()


def test_a_run_is_shown_without_a_cluster(tmp_path: Path) -> None:
    port, scenario = free_port(), scenario_file(tmp_path, "small", SMALL)
    with running(
        tmp_path, "console", "--scenario", scenario, "--seed", "7", "--port", str(port)
    ) as process:
        process.says("Console: ")
        assert status(port, "/replay") == 200
        assert status(port, "/replay.json") == 200

        async def look() -> None:
            async with Console([], port, None).browser() as browser:  # type: ignore[arg-type]
                hello = await browser.hear("hello")
                assert (hello["replay"], hello["topics"]) == (True, ["sandbox"])
                assert (await browser.see("sandbox"))["seed"] == 7

        trio.run(look)
        process.signal(signal.SIGINT)
        assert process.ends() == 0
