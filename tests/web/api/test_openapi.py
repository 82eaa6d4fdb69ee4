"""The document of the API, and what a tester who knows nothing else finds with it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from disque_trio.statemachine import commandoptions, joboptions
from disque_trio.web.api.openapi import made
from disque_trio.web.api.table import ROUTES
from tests.cluster.processes import Fleet, free_port
from tests.web.api.asking import program

SETTINGS: Final = """\
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "404", "409", "422", "429", "503"]
"""


def test_the_document_has_each_route_once() -> None:
    found = [(path, method) for path, item in made()["paths"].items() for method in item]
    names = [each.name for each in ROUTES]

    assert sorted(found) == sorted((each.path, each.method.lower()) for each in ROUTES)
    assert len(set(names)) == len(names)


def test_options_of_commands_are_fields_with_their_meanings_and_bounds() -> None:
    paths = made()["paths"]

    def fields(path: str) -> dict[str, Any]:
        body = paths[path]["post"]["requestBody"]["content"]["application/json"]
        found: dict[str, Any] = body["schema"]["properties"]
        return found

    added = fields("/queues/{queue}/jobs")
    for option in joboptions.OPTIONS:
        field = added[option.name.removeprefix("is_")]
        assert field["description"].startswith(option.meaning[:20].replace("`", ""))
    assert (added["priority"]["minimum"], added["priority"]["maximum"]) == (-100, 100)
    assert added["if_exists"]["enum"] == ["return", "reject", "again", "replace"]
    assert {each.name for each in commandoptions.NACK.values()} <= fields("/jobs/nack").keys()
    assert {each.name for each in commandoptions.RELEASE.values()} <= fields("/jobs/release").keys()


async def test_it_is_served(nursery: trio.Nursery) -> None:
    api = await program(nursery)

    document = await api.get("/openapi.json")

    assert document["openapi"] == "3.1.0"
    assert document["servers"] == [{"url": "/api/v1"}]
    assert document == json.loads(json.dumps(made()))


def test_a_tester_who_knows_the_document_alone_finds_no_failure(tmp_path: Path) -> None:
    """schemathesis: valid and invalid requests of each kind; statuses, types and schemas of the
    answers."""
    pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    document, port = made(), free_port()
    lease = document["paths"]["/jobs/lease"]["post"]["requestBody"]["content"]
    del lease["application/json"]["schema"]["properties"]["timeout"]  # nobody waits so long here
    (tmp_path / "document.json").write_text(json.dumps(document))
    (tmp_path / "settings.toml").write_text(SETTINGS)
    fleet = Fleet(tmp_path)
    try:
        fleet.server("--web-port", str(port))
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--config-file", "settings.toml"),
                *("run", "document.json", "--url", f"http://127.0.0.1:{port}/api/v1"),
                # In one thread: in two, ast.parse of Python 3.11 fails at times (CPython 106905).
                *("--max-examples", "2", "--phases", "coverage,fuzzing"),
                *("--continue-on-failure", "--no-color", "--warnings", "off"),
                *("--suppress-health-check", "all", "--request-timeout", "120"),
                # One of each family stands for the others, which have the same checks.
                *("--exclude-path-regex", "/operations/(?!queues/redrive|jobs/nack|nodes/kick)"),
                *("--generation-deterministic",),
            ],
            cwd=tmp_path, capture_output=True, text=True, timeout=550, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert " passed" in done.stdout
        log = "".join(each.read_text("utf-8", "replace") for each in tmp_path.rglob("*log*"))
        assert "this is a bug" not in log
    finally:
        fleet.close()
