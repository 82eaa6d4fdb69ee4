import socket
import time

import pytest

from disque_trio.cli.doctor import nodes
from disque_trio.cli.doctor.nodes import examine, survey
from disque_trio.client.address import Address, Tls
from disque_trio.observe import cluster
from disque_trio.observe.cluster import NodeFacts, PeerLine, peer_lines
from disque_trio.statemachine.base import Failure, Reply, Status
from tests.client.fakenode import Answer, Answers, fake_node

ME = "a" * 40
OTHER = "b" * 40
PATIENCE_S = 5.0


def answers(**changes: Answer) -> Answers:
    now = time.time()
    found: dict[bytes, Answer] = {
        b"TIME": [[b"%d" % now, b"%d" % (now % 1 * 1_000_000)]],
        b"CLUSTER": [ME.encode()],
        b"INFO": [b"# Server\r\ndisque_version:1.0\r\n\r\n# Jobs\r\nunder_replicated_jobs:2\r\n"],
        b"CONFIG": [[b"maxclients", b"10"]],
    }
    return found | {name.encode(): answer for name, answer in changes.items()}


def address(port: int) -> Address:
    return Address(port=port)


def test_a_node_is_asked_for_everything() -> None:
    with fake_node(answers()) as node:
        facts = examine(address(node.port), None, PATIENCE_S)

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
        facts = examine(address(node.port), None, PATIENCE_S)

    assert 3_500_000 < facts.skew_ms < 3_700_000


@pytest.mark.parametrize(
    "text", [b"MISCONF Errors writing to the AOF file: File too large", b"DUPLICATEID Another"]
)
def test_a_node_that_refuses_to_serve_is_asked_on(text: bytes) -> None:
    refusal = Failure(text)
    with fake_node(answers(PING=[refusal])) as node:
        facts = examine(address(node.port), None, PATIENCE_S)

    assert (facts.error, facts.id) == ("", ME)


def test_a_node_that_loads_says_how_far_it_is() -> None:
    refusal = Failure(b"LOADING Disque is loading the dataset in memory")
    info = b"# Persistence\r\nloading:1\r\nloading_loaded_perc:42.00\r\n"
    told = answers(PING=[refusal], TIME=[refusal], CLUSTER=[refusal], INFO=[info])
    with fake_node(told) as node:
        facts = examine(address(node.port), None, PATIENCE_S)

    assert (facts.error, facts.is_loading) == ("", True)
    assert facts.info["loading_loaded_perc"] == "42.00"


def test_what_is_counted_by_reason_is_read() -> None:
    info = {"bus_links_refused_by_reason": "cluster-secret=2,too many=1", "empty": ""}
    facts = NodeFacts(where="here", info=info)

    assert facts.counts("bus_links_refused_by_reason") == {"cluster-secret": 2, "too many": 1}
    assert facts.counts("empty") == facts.counts("missing") == {}


def test_commands_that_were_taken_away_leave_gaps_only() -> None:
    with fake_node(answers(CONFIG=[Failure(b"ERR unknown command")], TIME=[Status(b"?")])) as node:
        facts = examine(address(node.port), None, PATIENCE_S)

    assert (facts.error, facts.config) == ("", {})
    assert abs(facts.skew_ms) < 60_000


def test_a_node_that_is_not_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]

    facts = examine(address(port), None, PATIENCE_S)

    assert "Connection refused" in facts.error
    assert facts.advice


def test_a_node_that_says_nothing_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        facts = examine(address(silent.getsockname()[1]), None, 0.05)

    assert "does not answer PING within 0.05 s" in facts.error


@pytest.mark.parametrize(
    ("password", "changes"),
    [
        (None, {"TIME": [Failure(b"NOAUTH Authentication required.")]}),
        (b"wrong", {"AUTH": [Failure(b"ERR invalid password")]}),
    ],
)
def test_a_password_that_is_missing_or_wrong_is_told(
    password: bytes | None, changes: dict[str, Answer]
) -> None:
    with fake_node(answers(**changes)) as node:
        facts = examine(address(node.port), password, PATIENCE_S)

    assert facts.error
    assert "$DISQUE_AUTH" in facts.advice


def test_any_other_refusal_is_told_as_it_is() -> None:
    with fake_node(answers(TIME=[Failure(b"DENIED protected mode")])) as node:
        facts = examine(address(node.port), None, PATIENCE_S)

    assert facts.error == "DENIED protected mode"


def test_a_password_that_was_taken_is_known_to_be_needed() -> None:
    with fake_node(answers(AUTH=[Status(b"OK")])) as node:
        assert examine(address(node.port), b"secret", PATIENCE_S).has_password


def test_every_node_that_any_node_knows_is_asked() -> None:
    with fake_node(answers()) as first, fake_node(answers()) as second:
        known = (
            f"{ME} :0 myself 0 0 connected\n"
            f"{OTHER} 127.0.0.1:{second.port} noflags 0 0 connected\n"
            f"{'c' * 40} 127.0.0.1:1 fail 0 0 disconnected\n"
            f"{'d' * 40} :0 noaddr 0 0 disconnected\n"
            "no line of a node\n"
        )
        identities: list[Reply] = [ME.encode(), known.encode()]
        first.answers = {**answers(), b"CLUSTER": lambda: [identities.pop(0)]}
        names: list[Reply] = [OTHER.encode(), b""]
        second.answers = {**answers(), b"CLUSTER": lambda: [names.pop(0)]}

        found = survey(address(first.port), None, PATIENCE_S)

    assert [facts.id for facts in found] == [ME, OTHER, "c" * 40]
    assert [bool(facts.error) for facts in found] == [False, False, True]


def test_under_tls_the_others_are_asked_as_far_from_their_port_as_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def examined(address: Address, _password: bytes | None, _timeout_s: float) -> NodeFacts:
        asked.append(address.port)
        known = PeerLine(OTHER, "10.0.0.2", 7711, frozenset({"noflags"}), is_connected=True)
        return NodeFacts(where=str(address), id=ME, config={"port": "7711"}, peers=(known,))

    monkeypatch.setattr(nodes, "examine", examined)

    survey(Address(port=7712, tls=Tls()), None, PATIENCE_S)
    survey(Address(port=7711), None, PATIENCE_S)

    assert asked == [7712, 7712, 7711, 7711]


def test_at_the_port_that_workers_share_it_does_not_count_which_port_was_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    config = {"port": "7712", "tls-port": "7812", "workers": "2"}

    def examined(address: Address, _password: bytes | None, _timeout_s: float) -> NodeFacts:
        asked.append(address.port)
        known = PeerLine(OTHER, "10.0.0.1", 7713, frozenset({"noflags"}), is_connected=True)
        return NodeFacts(where=str(address), id=ME, config=config, peers=(known,))

    monkeypatch.setattr(nodes, "examine", examined)

    survey(Address(port=7811, tls=Tls()), None, PATIENCE_S)

    assert asked == [7811, 7813]


@pytest.mark.parametrize(("workers", "port"), [(b"2", 7712), (b"1", None)])
def test_a_worker_is_named_by_its_own_port(workers: bytes, port: int | None) -> None:
    told = answers(CONFIG=[[b"port", b"7712", b"workers", workers]])
    with fake_node(told) as node:
        facts = examine(address(node.port), None, PATIENCE_S)

    assert facts.where == f"127.0.0.1:{port or node.port}"


def test_the_bus_of_a_node_with_two_ports_is_above_the_plain_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as bus:
        monkeypatch.setattr(cluster, "BUS_OFFSET", bus.getsockname()[1] - 7711)
        told = answers(CONFIG=[[b"port", b"7711", b"tls-port", b"7712"]])
        with fake_node(told) as node:
            assert examine(address(node.port), None, PATIENCE_S).bus_error == ""


def test_a_bus_port_that_is_open_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_node(answers()) as node, socket.create_server(("127.0.0.1", 0)) as bus:
        monkeypatch.setattr(cluster, "BUS_OFFSET", bus.getsockname()[1] - node.port)

        assert examine(address(node.port), None, PATIENCE_S).bus_error == ""


def listening() -> socket.socket:
    return socket.create_server(("127.0.0.9", 0))


def test_the_bus_port_is_tried_where_the_node_announces_it() -> None:
    with listening() as bus:
        config = [
            *(b"cluster-announce-ip", b"127.0.0.9"),
            *(b"cluster-announce-bus-port", b"%d" % bus.getsockname()[1]),
        ]
        with fake_node(answers(CONFIG=[list(config)])) as node:
            assert examine(address(node.port), None, PATIENCE_S).bus_error == ""
    with fake_node(answers(CONFIG=[list(config)])) as node:
        assert examine(address(node.port), None, PATIENCE_S).bus_error


def test_a_line_of_a_node_has_its_zone_and_its_port_for_nodes() -> None:
    line = b"%b 10.0.0.1:7711@9000 noflags 0 0 connected zone=rack/1\n" % OTHER.encode()
    (peer,) = peer_lines(line.decode(), "here")

    assert (peer.port, peer.bus_port, peer.zone) == (7711, 9000, "rack/1")
