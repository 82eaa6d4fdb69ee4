from pathlib import Path

import pytest

from disque_trio.client import commands
from disque_trio.pipeline.connector.nodes import NodeGoneError, UnreachableError
from disque_trio.pipeline.errors import PipelineError
from tests.certificates import Authority
from tests.cluster.processes import Cluster, Fleet, free_port
from tests.pipeline.connector.desk import Desk, name_of, names_of

PING = [commands.ping()]
PONG = ["PONG"]


def test_one_node_tells_of_the_others(desk: Desk, cluster: Cluster) -> None:
    first, *_ = names_of(cluster)

    assert sorted(desk.dialled(nodes=first).live()) == sorted(names_of(cluster))
    assert desk.dialled(nodes=first, discover="false").live() == [first]


def test_a_node_with_two_names_is_one_node(desk: Desk, cluster: Cluster) -> None:
    port = cluster[0].port

    nodes = desk.dialled(nodes=f"localhost:{port},127.0.0.1:{port}")

    assert len(nodes.live()) == 3
    assert f"localhost:{port}" in nodes.live()


def test_a_node_that_has_died_rests_ever_longer_and_is_found_again(
    desk: Desk, fleet: Fleet
) -> None:
    server = fleet.server()
    name = name_of(server)
    now = [0.0]
    nodes = desk.dialled(lambda: now[0], nodes=name)
    assert nodes.ask(name, PING) == PONG

    server.kill()
    for rest in (2.0, 4.0, 8.0):
        with pytest.raises(NodeGoneError):
            nodes.ask(name, PING)
        now[0] += rest - 0.1
        with pytest.raises(NodeGoneError):
            nodes.ask(name, PING)
        now[0] += 0.1
    server.start().wait()

    assert nodes.ask(name, PING) == PONG


def test_a_node_that_stands_still_is_not_waited_for(desk: Desk, fleet: Fleet) -> None:
    server = fleet.server()
    name = name_of(server)
    nodes = desk.dialled(nodes=name, timeout="3")
    assert nodes.ask(name, PING) == PONG

    server.freeze()
    with pytest.raises(NodeGoneError, match="no answer in time"):
        nodes.ask(name, PING)
    assert nodes.down() == [name]
    server.thaw()


def test_where_nobody_answers_the_error_says_where_and_why(desk: Desk) -> None:
    name = f"127.0.0.1:{free_port()}"

    with pytest.raises(UnreachableError) as error:
        desk.dialled(nodes=name).live()

    assert str(error.value) == (
        f"no node answers ({name}): Could not connect to Disque at {name}: Connection refused"
    )


def test_what_is_no_node_is_told_from_one_that_is_down(desk: Desk, fleet: Fleet) -> None:
    server = fleet.server("--rename-command", "HELLO", "GREET")

    with pytest.raises(PipelineError, match="is not a Disque node"):
        desk.dialled(nodes=name_of(server)).live()


def test_a_password_is_given_and_its_lack_explained(
    desk: Desk, fleet: Fleet, tmp_path: Path
) -> None:
    server = fleet.server()
    server.client.call("CONFIG", "SET", "requirepass", "sesame")
    server.client.call("AUTH", "sesame")
    name = name_of(server)
    file = tmp_path / "password"
    file.write_text("sesame\n")

    assert desk.dialled(nodes=name, password="sesame").live() == [name]
    assert desk.dialled(nodes=name, passwordFile=str(file)).live() == [name]
    with pytest.raises(PipelineError, match=r"refuses the password.*options password"):
        desk.dialled(nodes=name, password="open").live()
    with pytest.raises(PipelineError, match="set the option password or passwordFile"):
        desk.dialled(nodes=name).live()


def test_tls_with_a_certificate_of_ones_own(desk: Desk, fleet: Fleet, tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    own, other = authority.sign(), Authority(tmp_path, "other")
    port = free_port()
    files = ("--tls-cert-file", own.cert, "--tls-key-file", own.key)
    fleet.server("--tls-port", str(port), *files, "--tls-ca-cert-file", authority.file)
    name = f"127.0.0.1:{port}"
    told = {"nodes": name, "tls": "true", "tlsCertFile": own.cert, "tlsKeyFile": own.key}

    assert desk.dialled(**told, tlsCaFile=authority.file).live() == [name]
    with pytest.raises(UnreachableError, match="certificate"):
        desk.dialled(**told, tlsCaFile=other.file).live()
