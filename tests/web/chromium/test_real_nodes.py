from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.cluster.processes import NODE_TIMEOUT, Cluster, Fleet, free_port
from tests.web.chromium.devtools import Tab


@attrs.frozen
class Consoles:
    """Three nodes, and the web port of the first."""

    cluster: Cluster
    address: str


@pytest.fixture
def consoles(tmp_path: Path) -> Iterator[Consoles]:
    fleet = Fleet(tmp_path)
    ports = [free_port() for _ in range(3)]
    timeout = ("--cluster-node-timeout", str(NODE_TIMEOUT))
    cluster = Cluster([fleet.unstarted("--web-port", str(port), *timeout) for port in ports])
    try:
        for server in cluster.servers:
            server.start()
        for server in cluster.servers:
            server.wait()
        cluster.meet()
        yield Consoles(cluster.wait(), f"http://127.0.0.1:{ports[0]}/")
    finally:
        fleet.close()


async def test_the_console_shows_and_acts_on_three_nodes_of_which_one_is_killed(
    consoles: Consoles, tab: Tab
) -> None:
    first, _, third = consoles.cluster.servers
    ids = [
        first.client.text("ADDJOB", "mail", f"body {n}", 0, "REPLICATE", 2, "RETRY", 60)
        for n in range(5)
    ]
    job = ids[0].decode()

    pages = {
        "#/cluster": "All run version",
        "#/queues": "mail",
        "#/queue/mail": "Oldest (5)",
        f"#/job/{job}": "one node is killed: not lost",
        "#/workers": "connections of workers and of the console",
        "#/dead": "No job is dead.",
        "#/later": "0 delayed jobs",
    }
    await tab.open(consoles.address)
    await tab.has("3 nodes answer")
    for hash_, text in pages.items():
        await tab.run(f"location.hash = {hash_!r}")
        await tab.has(text)
    await tab.run("location.hash = '#/queue/mail'")
    await tab.has("Oldest (5)")
    await tab.press("P", "Enter")
    await tab.has("accepts no jobs and delivers none at 3 nodes")
    await tab.press("Enter")
    await tab.until("document.querySelectorAll('.outcome .good').length === 3")
    assert first.client.text("PAUSE", "mail", "state") == b"all"
    await tab.press("Escape")

    third.kill()
    await tab.run("location.hash = '#/overview'")
    await tab.has("2 of 3 nodes answer", "silent")
    await tab.run("location.hash = '#/cluster'")
    await tab.until("document.querySelectorAll('.matrix td.bad').length === 2")
    for hash_ in pages:
        await tab.run(f"location.hash = {hash_!r}")
        await tab.has(f"127.0.0.1:{third.port}", "no answer for")
    await tab.run("location.hash = '#/queue/mail'")
    await tab.has("Resume")
    await tab.press("S")
    await tab.until("document.querySelector('dialog .main')?.innerText === 'Resume'")
    await tab.press("Enter")
    await tab.has(f"127.0.0.1:{third.port}")
    assert first.client.text("PAUSE", "mail", "state") == b"none"


@pytest.mark.slow
async def test_an_admin_sees_who_has_done_what(consoles: Consoles, tab: Tab) -> None:
    await tab.open(consoles.address)
    await tab.run("location.hash = '#/audit'")
    await tab.has("No operation has been run here.")
    await tab.run(
        "fetch('/api/v1/operations/queues/pause', {method: 'POST', body:"
        " JSON.stringify({arguments: {queue: 'mail', side: 'in'}}),"
        " headers: {'Content-Type': 'application/json'}}).then(({status}) => status)"
    )

    await tab.run("location.hash = '#/cluster'")
    await tab.click("a", "Audit log")

    await tab.has("queues pause", "mail in", "127.0.0.1 HTTP", "no login")
    assert await tab.run("document.querySelector('#bar [aria-current]').innerText") != ""
    assert await tab.run("document.title.includes('Audit log')")
