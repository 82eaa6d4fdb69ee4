"""CLUSTER and HELLO (original 2.10, 2.12)."""

from functools import partial
from typing import Final

from disque_trio.statemachine import hostnames, membership, sessions, waiters
from disque_trio.statemachine.address import MAX_PORT, is_host_name, is_port
from disque_trio.statemachine.base import (
    FAIL,
    HANDSHAKE,
    LAST_PORT,
    LEAVING,
    NODE_ID_LENGTH,
    OK,
    PFAIL,
    SYNTAX_ERROR,
    CommandError,
    Reply,
    Status,
)
from disque_trio.statemachine.chores import AwaitNodes, LookUp, Lookup, SaveNodes
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Cluster, Peer
from disque_trio.statemachine.commands.parse import integer
from disque_trio.statemachine.commands.usage import mistake
from disque_trio.statemachine.nodesfile import nodes_text
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.suggestions import none_of, shown

_HELLO_VERSION: Final = 1
USAGE: Final = (
    "MEET host port [bus-port] | NODES | MYID | INFO | FORGET id|host:port | LEAVING [yes|no]"
    " | RESET [SOFT|HARD] | SAVECONFIG"
)


def nodes(node: NodeState) -> Reply:
    """The reply of HELLO: all nodes with their addresses and priorities, except nodes in handshake
    (original, defect 28)."""
    known: list[Reply] = [
        [peer.id, peer.ip.encode(), b"%d" % peer.port, b"%d" % _priority(node, peer)]
        for peer in node.cluster.nodes.values()
        if not peer.flags & HANDSHAKE
    ]
    return [_HELLO_VERSION, node.cluster.myself.id, *known]


def _priority(node: NodeState, peer: Peer) -> int:
    """The priority for clients, which should prefer the node with the lowest one."""
    if peer.flags & (FAIL | LEAVING):
        return 100
    if peer.flags & PFAIL:
        return 10
    return 1 if peer.is_connected or peer is node.cluster.myself else 5


def cluster(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """CLUSTER subcommand [argument ...]."""
    match [args[1].upper(), *args[2:]]:
        case [b"MEET", ip, *ports] if 1 <= len(ports) <= 2:
            return _meet(node, client, ip, *ports)
        case [b"NODES"]:
            return nodes_text(node, handshakes=True)
        case [b"MYID"]:
            return node.cluster.myself.id
        case [b"INFO"]:
            return _info(node.cluster)
        case [b"SAVECONFIG"]:
            return sessions.ask(node, client, SaveNodes(), _saved)
        case [b"FORGET", name]:
            return _forget(node, client, name)
        case [b"RESET", *words] if len(words) <= 1:
            return _reset(node, client, words)
        case [b"LEAVING", *words] if len(words) <= 1:
            return _leaving(node, client, words)
    text = b"ERR Wrong CLUSTER subcommand or number of arguments"
    raise CommandError(text + b": " + mistake("CLUSTER", USAGE, args))


def _meet(node: NodeState, client: Client, ip: bytes, port: bytes, bus_port: bytes = b"0") -> Reply:
    client_port, node_port = (
        integer(each, b"ERR Invalid TCP port specified: " + each) for each in (port, bus_port)
    )
    name = ip.decode("ascii", "replace")
    if membership.meet(node, name, client_port, node_port):
        return OK
    if not is_host_name(name) or not is_port(client_port, node_port):
        raise CommandError(
            b"ERR Invalid node address specified: %b:%b; it takes an IP address or the name of a"
            b" host, and a port from 1 to %d" % (ip, port, LAST_PORT if node_port else MAX_PORT)
        )
    return sessions.ask(node, client, LookUp(name), partial(_met, (name, client_port, node_port)))


def _met(place: tuple[str, int, int], node: NodeState, _client: Client, lookup: Lookup) -> Reply:
    if lookup.error:
        raise CommandError(
            b"ERR Cannot resolve the host name '%b': %b. Check its spelling, and that the machine"
            b" of this node can resolve it" % (place[0].encode(), lookup.error.encode())
        )
    hostnames.meet(node, place, lookup)
    return OK


def _info(cluster: Cluster) -> Reply:
    fields = {
        # As in the original, which has no other state.
        b"cluster_state": b"ok",
        b"cluster_known_nodes": b"%d" % len(cluster.nodes),
        b"cluster_reachable_nodes": b"%d" % len(cluster.reachable),
        b"cluster_size": b"%d" % cluster.size,
        b"cluster_stats_messages_sent": b"%d" % cluster.messages_sent,
        b"cluster_stats_messages_received": b"%d" % cluster.messages_received,
    }
    return b"".join(b"%b:%b\r\n" % field for field in fields.items())


def _saved(node: NodeState, client: Client, error: str | None) -> Reply:
    if error is not None:
        raise CommandError(b"ERR error saving the cluster node config: " + error.encode())
    return OK


def _applied(_node: NodeState, _client: Client, _outcome: object) -> Reply:
    """Reply OK. The change survives a restart, unless writing nodes.conf has failed."""
    return OK


def _forget(node: NodeState, client: Client, name: bytes) -> Reply:
    if hostnames.forget_name(node, name.decode("ascii", "replace")):
        return sessions.ask(node, client, AwaitNodes(), _applied)
    if len(name) != NODE_ID_LENGTH:
        raise CommandError(
            b"ERR Invalid node identifier: %b has not 40 digits; CLUSTER NODES shows them all"
            % shown(name)
        )
    if name not in node.cluster.nodes:
        raise CommandError(b"ERR Unknown node ID: %b" % shown(name))
    if name == node.cluster.myself.id:
        raise CommandError(b"ERR I tried hard but I can't forget myself...")
    membership.forget(node, name)
    return sessions.ask(node, client, AwaitNodes(), _applied)


def _reset(node: NodeState, client: Client, words: list[bytes]) -> Reply:
    how = words[0].upper() if words else b"SOFT"
    if how not in (b"SOFT", b"HARD"):
        raise CommandError(SYNTAX_ERROR + b": " + none_of(words[0], (b"SOFT", b"HARD")))
    sessions.flush(node)
    membership.reset(node, hard=how == b"HARD")
    return sessions.ask(node, client, SaveNodes(), _saved)


def _leaving(node: NodeState, client: Client, words: list[bytes]) -> Reply:
    if not words:
        return Status(b"yes" if node.cluster.is_leaving else b"no")
    answer = words[0].lower()
    if answer not in (b"yes", b"no"):
        raise CommandError(
            b"ERR Wrong argument for CLUSTER LEAVING. Use 'yes' or 'no', not %b" % shown(words[0])
        )
    membership.set_leaving(node, leaving=answer == b"yes")
    if node.cluster.is_leaving:
        waiters.release_leaving(node)
    return sessions.ask(node, client, AwaitNodes(), _applied)
