"""HELLO, which lists the nodes in Disque and selects the protocol in Redis; and RESET.

`HELLO` alone is Disque's (original 2.10). Current Redis clients send it with a protocol version as
their first request; the original refuses that. Version 3 changes only nulls, and the replies of
this command, CONFIG GET, COMMAND, QUEUE INFO and TRACE. Owns `Client.protocol`.
"""

from typing import Final

from disque_trio.statemachine import sessions
from disque_trio.statemachine.base import SYNTAX_ERROR, CommandError, Reply, Status, map_for
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands.clients import set_name
from disque_trio.statemachine.commands.cluster import nodes
from disque_trio.statemachine.commands.parse import Words, integer
from disque_trio.statemachine.commands.server import log_in, log_out
from disque_trio.statemachine.state import NodeState

USAGE: Final = "[version] [AUTH user password] [SETNAME name]"


def hello(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """HELLO [version [AUTH username password] [SETNAME name]]."""
    if len(args) > 1:
        return _greet(node, client, args[1], Words(args[2:]))
    _check_authenticated(node, client)
    return nodes(node)


def _greet(node: NodeState, client: Client, version: bytes, words: Words) -> Reply:
    protocol = integer(version, b"ERR Protocol version is not an integer or out of range")
    if protocol not in (2, 3):
        raise CommandError(
            b"NOPROTO unsupported protocol version: there are 2 and 3, not %d" % protocol
        )
    for word in words:
        match word.upper():
            case b"AUTH":
                user = words.value(b"AUTH")
                log_in(node, client, words.value(b"the user of AUTH"), user=user)
            case b"SETNAME":
                set_name(client, words.value(b"SETNAME"))
            case _:
                # The error omits the word, because it may be a misplaced password.
                raise CommandError(SYNTAX_ERROR + b": HELLO " + USAGE.encode())
    _check_authenticated(node, client)
    client.protocol = protocol
    facts: dict[bytes, Reply] = {
        b"server": b"disque",
        b"version": node.facts.version.encode(),
        b"proto": protocol,
        b"id": client.id,
        b"mode": b"cluster",
        b"role": b"master",
        b"modules": [],
    }
    return map_for(protocol, facts)


def reset(node: NodeState, client: Client, _args: list[bytes]) -> Reply:
    """RESET: return the connection to the state of a new one."""
    sessions.start_anew(node, client)
    log_out(client)
    set_name(client, b"")
    client.protocol = 2
    return Status(b"RESET")


def _check_authenticated(node: NodeState, client: Client) -> None:
    if node.config.requirepass and not client.authenticated:
        raise CommandError(b"NOAUTH Authentication required.")
