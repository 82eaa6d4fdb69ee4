"""A node that is killed and started again: its backlog is seen, and can be queued at once."""

import json
import subprocess
import sys
from typing import Any, Final

import pytest

from tests.cluster.processes import Fleet, Server
from tests.cluster.test_python_clients import url

_DISQUE_TRIO: Final = (sys.executable, "-m", "disque_trio")


def told(server: Server, *words: str) -> Any:
    ended = subprocess.run(
        [*_DISQUE_TRIO, *words, "--json", "--url", url(server)], capture_output=True, check=False
    )
    return json.loads(ended.stdout)


def restored(server: Server) -> int:
    [orders] = [each for each in told(server, "queues", "list") if each["name"] == "orders"]
    found: int = orders["restored"]
    return found


@pytest.mark.slow
def test_a_backlog_is_seen_after_a_crash_and_is_queued_when_an_operator_says_so(
    fleet: Fleet,
) -> None:
    server = fleet.server(
        "--appendonly", "yes", "--appendfsync", "always", "--aof-queues", "no"
    ).wait()
    for number in range(20):
        server.client.call("ADDJOB", "orders", f"order {number}", "0", "RETRY", "3600")

    server.kill()
    server.start().wait()

    assert restored(server) == 20
    assert server.client.call("QLEN", "orders") == 0
    assert "expired_meanwhile=0" in server.log()
    assert told(server, "queues", "requeue", "orders", "--count", "5")["count"] == 5
    assert told(server, "queues", "requeue", "orders")["count"] == 15
    assert restored(server) == 0
    assert server.client.call("QLEN", "orders") == 20
