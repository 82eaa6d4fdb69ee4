"""The doctor and the console's overview list the same findings for the same cluster."""

import json
import re
from typing import Any

import anyio
import pytest

from disque_trio.__main__ import main
from disque_trio.cli.doctor import machine
from disque_trio.client.address import Address
from disque_trio.client.address import Cluster as Seeds
from disque_trio.observe import client as deadline_client
from disque_trio.observe.client import DeadlineClient
from disque_trio.observe.observer import Observer
from tests.cluster.processes import NODE_TIMEOUT, SOON_S, Cluster, Fleet, Server, eventually
from tests.cluster.talk import RefusedError

LEVELS = {"problem": "bad", "warning": "warn", "note": "note"}
Told = set[tuple[str, str, str]]
"""Level, kind and text, without figures that a second changes."""


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the doctor adds of the machine is not asked here; the nodes may take their time."""
    monkeypatch.setattr(machine, "judge", lambda: iter(()))
    monkeypatch.setattr(machine, "judge_node", lambda _: iter(()))
    monkeypatch.setattr(deadline_client, "ANSWER_S", 20.0)


def timeless(level: str, kind: str, text: str) -> tuple[str, str, str]:
    where, _, what = text.partition(": ")
    if kind == "failed":
        what = what.partition("; ")[0]  # how it does not answer may differ
    return level, kind, "" if kind == "silent" else f"{where}: {re.sub(r'[0-9.,]+', '#', what)}"


def of_doctor(server: Server, capsys: pytest.CaptureFixture[str]) -> Told:
    capsys.readouterr()
    main(["doctor", "--json", "-p", str(server.port), "-t", "20"])
    return {
        timeless(LEVELS[each["level"]], each["kind"], f"{each['where']}: {each['what']}")
        for each in json.loads(capsys.readouterr().out)["findings"]
    }


def of_overview(server: Server) -> Told:
    async def look() -> list[dict[str, Any]]:
        async with DeadlineClient(Seeds([Address(port=server.port)])) as client:
            observer = Observer(client)
            await observer.look()
            await observer.counts.once()
            return [each.as_dict() for each in await observer.findings(await observer.look())]

    return {
        timeless(LEVELS[each["level"]], each["kind"], f"{each['where']}: {each['what']}")
        for each in anyio.run(look)
    }


def kinds(found: Told) -> set[str]:
    return {kind for _, kind, _ in found}


@pytest.fixture
def cluster(fleet: Fleet) -> Cluster:
    return fleet.cluster(
        3, "--appendonly", "yes", "--appendfsync", "always", "--aof-queues", "no",
        "--cluster-node-timeout", str(NODE_TIMEOUT),
    )  # fmt: skip


@pytest.mark.slow
def test_of_queues_jobs_and_a_dead_node_both_list_the_same(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, gone = cluster.servers
    for server in (first, second):
        server.client.call("PAUSE", "mail", "out")
    first.client.add("reports", "body", "REPLICATE", 3, "RETRY", 1, "LIMIT", 1)
    first.client.get("reports")
    eventually(lambda: first.client.info("jobs")["dead_jobs"] == "1", SOON_S, "a job is dead")
    for _ in range(20):
        first.client.add("orders", "body", "REPLICATE", 1, "RETRY", 3600)
    first.client.add("mail", "body", "REPLICATE", 3, "DELAY", 3000)
    first.kill()
    first.start().wait()
    eventually(lambda: first.client.info("jobs")["restored_jobs"] == "20", SOON_S, "20 wait")
    eventually(lambda: kinds(of_doctor(first, capsys)) >= {"restored"}, SOON_S, "they are told")

    gone.kill()
    eventually(lambda: _refuses(second), SOON_S, "a job cannot have three copies")
    eventually(lambda: _lacks(first, second), SOON_S, "jobs that the node held lack a copy")

    expected = {
        *("failed", "refused", "under-replicated", "paused", "dead", "restored"),
        "delayed",
    }

    def is_same() -> bool:
        doctor, overview = of_doctor(second, capsys), of_overview(second)
        is_once = "silent" not in kinds(doctor)
        return doctor == overview and is_once and kinds(doctor) >= expected

    eventually(is_same, SOON_S, "doctor and overview list the same findings")


def _refuses(server: Server) -> bool:
    try:
        server.client.add("mail", "body", "REPLICATE", 3, timeout=500)
    except RefusedError as error:
        return "NOREPL" in str(error)
    return False


def _lacks(*servers: Server) -> bool:
    """One of the holders reports a job for all: which one, their IDs decide."""
    return any(each.client.info("jobs")["under_replicated_jobs"] != "0" for each in servers)
