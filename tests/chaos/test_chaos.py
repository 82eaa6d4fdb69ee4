"""Real nodes behind proxies: cuts part them, and a run of chaos is judged."""

from pathlib import Path

import pytest

from disque_trio.cli.sim import main
from disque_trio.cli.sim.outcomes import PASSED
from disque_trio.sim.engines.tcp import addresses
from tests.chaos.faults import ProxyFaults
from tests.chaos.running import OPTIONS, SLACK_S, Chaos
from tests.chaos.ways import Ways
from tests.cluster.processes import SOON_S, Cluster, Server, becomes, eventually, flags_of

SETTLE_S = 5.0


def test_a_cut_parts_nodes_until_it_is_mended(tmp_path: Path) -> None:
    found = addresses.find(2)
    one, two = (
        Server(tmp_path / f"{n}", OPTIONS, port=found.port, host=found.own(n)) for n in (1, 2)
    )
    cluster = Cluster([one, two])
    with Ways(found, 2) as ways:
        try:
            for server in cluster.servers:
                server.start()
            for server in cluster.servers:
                server.wait()
            one.client.call("CLUSTER", "MEET", found.seen(2), found.port)
            cluster.wait()

            ways.cut([(1, 2), (2, 1)])
            eventually(
                lambda: _suspects(one, two) and _suspects(two, one), SOON_S, "each misses the other"
            )
            ways.mend([(1, 2), (2, 1)])
            becomes(cluster.is_whole, True, SOON_S, "they are connected again")
        finally:
            complaints = [each for server in cluster.servers for each in server.close()]
    assert complaints == []


def _suspects(server: Server, other: Server) -> bool:
    return not {"fail", "fail?"}.isdisjoint(flags_of(server, other.id))


@pytest.mark.slow
def test_clients_of_nodes_in_chaos_see_nothing_wrong(tmp_path: Path) -> None:
    said: list[str] = []
    links = Ways(addresses.find(3), 3, seed=1)
    chaos = Chaos(
        tmp_path, 1, links, ProxyFaults, said.append, round_s=4, calm_s=1, settle_s=SETTLE_S
    )

    result = chaos.run(until=0)

    assert result.complaints == []
    assert result.rounds == 1
    assert result.faults.total() > 0
    assert said[-1] == "take all jobs"
    limits = ("--settle", f"{SETTLE_S}", "--slack", f"{SLACK_S}")
    assert main(["judge", *limits, str(result.history)]) == PASSED
