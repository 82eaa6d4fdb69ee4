"""What a survey reads of the answers of nodes, of which some are refused, missing or late."""

import socket
import time

import anyio
import pytest
import trio

from disque_trio.client.address import Address, Cluster, Tls
from disque_trio.observe import cluster
from disque_trio.observe.client import DeadlineClient
from disque_trio.observe.cluster import NodeFacts, lines_of
from disque_trio.observe.survey import KnownNode, Survey
from disque_trio.statemachine.base import Failure, Reply, Status
from tests.client.fakenode import Answer, Answers, fake_node

ME = "a" * 40
OTHER = "b" * 40
MYSELF = f"{ME} :0 myself 0 0 connected\n"


def answers(**changes: Answer) -> Answers:
    now = time.time()
    found: dict[bytes, Answer] = {
        b"TIME": [[b"%d" % now, b"%d" % (now % 1 * 1_000_000)]],
        b"CLUSTER": [MYSELF.encode()],
        b"HELLO": [[1, ME.encode(), [ME.encode(), b"", b"0", b"1"]]],
        b"INFO": [b"# Server\r\ndisque_version:1.0\r\n\r\n# Jobs\r\nunder_replicated_jobs:2\r\n"],
        b"CONFIG": [[b"maxclients", b"10"]],
    }
    return found | {name.encode(): answer for name, answer in changes.items()}


def surveyed(port: int, password: bytes | None = None, answer_s: float = 20.0) -> list[NodeFacts]:
    async def look() -> list[NodeFacts]:
        addresses = Cluster([Address(port=port)], password)
        async with DeadlineClient(addresses, answer_s=answer_s) as client:
            survey = Survey(client)
            await survey.look()
            return [each.facts for each in survey.nodes.values()]

    return anyio.run(look, backend="trio")


def examined(port: int, password: bytes | None = None, answer_s: float = 20.0) -> NodeFacts:
    [facts] = surveyed(port, password, answer_s)
    return facts


def test_a_node_is_asked_for_everything() -> None:
    with fake_node(answers()) as node:
        facts = examined(node.port)

    assert facts.error == ""
    assert facts.id == ME
    assert facts.number("under_replicated_jobs") == 2
    assert facts.number("no_such_field") == 0
    assert facts.config == {"maxclients": "10"}
    assert not facts.is_ours
    assert abs(facts.skew_ms) < 60_000
    assert facts.bus_error, "nobody listens there"


def test_a_clock_that_is_off_shows() -> None:
    with fake_node(answers(TIME=[[b"%d" % (time.time() + 3600), b"0"]])) as node:
        facts = examined(node.port)

    assert 3_500_000 < facts.skew_ms < 3_700_000


LOADING = Failure(b"LOADING Disque is loading the dataset in memory")


def test_a_node_that_loads_says_how_far_it_is() -> None:
    info = b"# Persistence\r\nloading:1\r\nloading_loaded_perc:42.00\r\n"
    told = answers(TIME=[LOADING], CLUSTER=[LOADING], HELLO=[LOADING], INFO=[info])
    with fake_node(told) as node:
        facts = examined(node.port)

    assert (facts.error, facts.is_loading, facts.bus_error) == ("", True, "")
    assert facts.info["loading_loaded_perc"] == "42.00"


def test_a_node_that_died_while_it_loaded_is_silent() -> None:
    known = KnownNode(Address(), info={"loading": "1"}, why="no answer for 9 s", reason="refused")

    assert known.state == "silent"
    assert known.facts.error == "refused"


def test_what_is_counted_by_reason_is_read() -> None:
    info = {"bus_links_refused_by_reason": "cluster-secret=2,too many=1", "empty": ""}
    facts = NodeFacts(where="here", info=info)

    assert facts.counts("bus_links_refused_by_reason") == {"cluster-secret": 2, "too many": 1}
    assert facts.counts("empty") == facts.counts("missing") == {}


def test_commands_that_were_taken_away_leave_gaps_only() -> None:
    unknown = Failure(b"ERR unknown command")
    told = answers(CONFIG=[unknown], TIME=[Status(b"?")], HELLO=[unknown])
    with fake_node(told) as node:
        facts = examined(node.port)

    assert (facts.error, facts.config, facts.id) == ("", {}, ME)
    assert abs(facts.skew_ms) < 60_000


def test_a_node_that_is_not_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]

    facts = examined(port)

    assert "Connection refused" in facts.error
    assert facts.advice
    assert facts.error_since is None, "it may have been away long before"


def test_a_node_that_says_nothing_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        facts = examined(silent.getsockname()[1], answer_s=0.05)

    assert facts.error == "no answer within 0.05 s"


NOAUTH = Failure(b"NOAUTH Authentication required.")
INVALID = Failure(b"ERR invalid password")


def refusing(failure: Failure) -> Answers:
    """Whatever it is asked."""
    return {key: [failure] for key in (b"TIME", b"HELLO", b"INFO", b"CLUSTER", b"CONFIG")}


@pytest.mark.parametrize(
    ("password", "told", "error"),
    [
        (None, refusing(NOAUTH), "NOAUTH Authentication required."),
        (b"wrong", answers(AUTH=[INVALID]), "ERR invalid password"),
    ],
)
def test_a_password_that_is_missing_or_wrong_is_told(
    password: bytes | None, told: Answers, error: str
) -> None:
    with fake_node(told) as node:
        facts = examined(node.port, password)

    assert facts.error == error
    assert "$DISQUE_AUTH" in facts.advice


def test_a_node_without_the_password_of_the_others_is_to_be_given_it() -> None:
    needless = Failure(b"ERR Client sent AUTH, but no password is set")
    with fake_node(answers(AUTH=[needless])) as node:
        facts = examined(node.port, b"secret")

    assert facts.error == needless.text.decode()
    assert "requirepass" in facts.advice


def test_a_node_in_protected_mode_says_itself_what_to_do() -> None:
    with fake_node({}, refusal=b"-DENIED It is in protected mode. Set a password.\r\n") as node:
        facts = examined(node.port)

    assert facts.error == "DENIED It is in protected mode"
    assert facts.advice == "Set a password."


def test_a_node_that_has_no_place_is_told() -> None:
    with fake_node({}, refusal=b"-ERR max number of clients reached\r\n") as node:
        assert "ERR max number of clients reached" in examined(node.port).error


def test_any_other_refusal_is_told_as_it_is() -> None:
    with fake_node(refusing(Failure(b"ERR not today"))) as node:
        facts = examined(node.port)

    assert "ERR not today" in facts.error


def test_a_password_that_was_taken_is_known_to_be_needed() -> None:
    with fake_node(answers(AUTH=[Status(b"OK")])) as node:
        assert examined(node.port, b"secret").has_password


def test_every_node_that_any_node_knows_is_asked() -> None:
    def known(myself: str, *others: tuple[str, int]) -> Answers:
        rows: list[Reply] = [[id.encode(), b"127.0.0.1", b"%d" % port, b"1"] for id, port in others]
        lines = "".join(f"{id} 127.0.0.1:{port} noflags 0 0 connected\n" for id, port in others)
        own = MYSELF.replace(ME, myself)
        hello: list[Reply] = [1, myself.encode(), *rows]
        return answers(HELLO=[hello], CLUSTER=[(own + lines).encode()])

    with fake_node(answers()) as first, fake_node(answers()) as second:
        first.answers = known(ME, (OTHER, second.port), ("c" * 40, 1))
        second.answers = known(OTHER, (ME, first.port))

        found = surveyed(first.port)

    assert sorted(facts.id for facts in found) == [ME, OTHER, "c" * 40]
    assert [facts.id for facts in found if facts.error] == ["c" * 40]


CONFIGS = {
    "one process": ({"port": "7711"}, 7712, [7712, 7713]),
    "workers": ({"port": "7712", "tls-port": "7812", "workers": "2"}, 7811, [7811, 7813]),
    "no plain port": ({}, 7711, [7711, 7712]),
}


@pytest.mark.parametrize("how", CONFIGS)
def test_under_tls_the_others_are_asked_as_far_from_their_port_as_the_one_that_tells_of_them(
    how: str,
) -> None:
    config, asked, expected = CONFIGS[how]
    first = KnownNode(Address(port=asked, tls=Tls()), id=ME, config=config)
    lines = (
        f"{MYSELF}{OTHER} 10.0.0.2:{7713 if 'workers' in config else 7712} noflags 0 0 connected\n"
        f"{'c' * 40} :0 handshake 0 0 connected\n{'d' * 40} :0 noaddr 0 0 disconnected\n"
    )
    first.lines = tuple(lines_of(lines, "10.0.0.1")[1:])
    for follows in (True, False):
        client = DeadlineClient(Cluster([first.address]), follows_tls=follows)

        Survey(client)._follow(first)

        ports = [each.port for each in client.nodes.order(0.0)]
        assert ports == (expected if follows else expected[:1])


@pytest.mark.parametrize(("workers", "port"), [("2", 7712), ("1", 7711)])
def test_a_worker_is_named_by_its_own_port(workers: str, port: int) -> None:
    known = KnownNode(Address(port=7711), config={"port": "7712", "workers": workers})

    assert known.facts.where == f"127.0.0.1:{port}"


def test_the_bus_of_a_node_with_two_ports_is_above_the_plain_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as bus:
        monkeypatch.setattr(cluster, "BUS_OFFSET", bus.getsockname()[1] - 7711)
        with fake_node(answers(CONFIG=[[b"port", b"7711", b"tls-port", b"7712"]])) as node:
            assert examined(node.port).bus_error == ""


def test_a_bus_port_that_is_open_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_node(answers()) as node, socket.create_server(("127.0.0.1", 0)) as bus:
        monkeypatch.setattr(cluster, "BUS_OFFSET", bus.getsockname()[1] - node.port)

        assert examined(node.port).bus_error == ""


def test_the_bus_port_is_tried_where_the_node_announces_it() -> None:
    with socket.create_server(("127.0.0.9", 0)) as bus:
        config = [
            *(b"cluster-announce-ip", b"127.0.0.9"),
            *(b"cluster-announce-bus-port", b"%d" % bus.getsockname()[1]),
        ]
        with fake_node(answers(CONFIG=[list(config)])) as node:
            assert examined(node.port).bus_error == ""
    with fake_node(answers(CONFIG=[list(config)])) as node:
        assert examined(node.port).bus_error


def test_a_line_of_a_node_has_its_zone_and_its_port_for_nodes() -> None:
    line = f"{OTHER} 10.0.0.1:7711@9000 noflags 0 0 connected zone=rack/1\n"
    [peer] = lines_of(line, "here")

    assert (peer.port, peer.bus_port, peer.zone) == (7711, 9000, "rack/1")


async def test_a_node_tells_its_directives_once_it_has_loaded(nursery: trio.Nursery) -> None:
    del nursery
    with fake_node(answers(INFO=[b"loading:1\r\n"], CONFIG=[LOADING])) as node:
        async with DeadlineClient(Cluster([Address(port=node.port)])) as client:
            survey = Survey(client)
            await survey.look()
            assert [each.state for each in survey.nodes.values()] == ["loading"]
            node.answers = answers()
            await survey.look(fresh_s=0.0)

            assert [each.facts.config for each in survey.nodes.values()] == [{"maxclients": "10"}]
