"""The checks before a command runs, in the original's order (original 1.4)."""

from typing import Final

from disque_trio.statemachine import pressure, recovery
from disque_trio.statemachine.base import Failure
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands.rows import Command, Flag
from disque_trio.statemachine.commands.usage import wrong_number
from disque_trio.statemachine.state import NodeState

_OPEN: Final = ("auth", "hello", "reset")
"""Commands by which a client may authenticate itself."""


def must_check(node: NodeState, client: Client) -> bool:
    """Could a check other than the number of words fail? If not, `refusal_of` is not called. Always
    true while there are monitors."""
    memory = node.memory
    return (
        memory.held > memory.hard
        or bool(node.monitors)
        or node.refusal is not None
        or (not client.authenticated and bool(node.config.requirepass))
    )


def refusal_of(node: NodeState, client: Client, args: list[bytes], row: Command) -> Failure | None:
    """The error with which this request is refused; None if it is accepted."""
    if not row.least <= len(args) <= row.most:
        return Failure(wrong_number(row.name, row.usage))
    if node.config.requirepass and not client.authenticated and row.name not in _OPEN:
        return Failure(b"NOAUTH Authentication required.")
    memory = node.memory
    is_short = memory.held > memory.hard and not pressure.relieve(node)
    if is_short and Flag.DENYOOM in row.flags:
        return pressure.refusal(node)
    return None if node.refusal is None else _refusal_by_state(node.refusal, row)


def _refusal_by_state(refusal: Failure, row: Command) -> Failure | None:
    """While the journal is being loaded, only commands with the flag LOADING are accepted. While it
    cannot be written, or this process yields its node ID, commands that write and PING are
    refused."""
    if refusal is recovery.LOADING:
        return None if Flag.LOADING in row.flags else refusal
    return refusal if Flag.WRITE in row.flags or row.name == "ping" else None
