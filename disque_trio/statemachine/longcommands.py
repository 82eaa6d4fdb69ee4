"""Commands about many jobs, which run in steps while other clients are served.

Each tick runs one step of one command; commands take turns. Further requests of the client wait
until the reply. Most commands continue if the client disconnects; one that takes jobs for it stops.
Owns `NodeState.long_commands`, sets `Outbox.changing` and `NodeState.acker`.
"""

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from disque_trio.statemachine import counts, waiters
from disque_trio.statemachine.base import PENDING, CommandError, Reply
from disque_trio.statemachine.client import Blocked, Client, ReplyMode
from disque_trio.statemachine.state import LongCommand, NodeState

T = TypeVar("T")
Steps = Generator[None, None, Reply]
"""Yields between steps, and returns the reply. A step raises CommandError only while no earlier one
has changed anything."""


def run(node: NodeState, client: Client, steps: Steps, *, needs_client: bool = False) -> Reply:
    """Run the first step. Returns the reply if that was the last one, or PENDING. Raises
    CommandError."""
    # CLIENT REPLY SKIP applies to one request, so that must run to its end here.
    is_whole = client.reply_mode is ReplyMode.SKIP
    try:
        next(steps)
        while is_whole:
            next(steps)
    except StopIteration as end:
        reply: Reply = end.value
        return reply
    waiters.block(node, client, Blocked.STEPS, 0)
    node.long_commands.append(LongCommand(client, steps, needs_client))
    return PENDING


def go_on(node: NodeState) -> None:
    """Run one step of the command that has waited longest."""
    command = node.long_commands.pop(0)
    client = command.client
    is_here = node.clients.get(client.id) is client
    if command.needs_client and not is_here:
        command.steps.close()
    elif _step(node, command, is_here=is_here):
        node.long_commands.append(command)


def _step(node: NodeState, command: LongCommand, *, is_here: bool) -> bool:
    """Run one step. Returns whether there is another one."""
    client = command.client
    try:
        next(command.steps)
    except StopIteration as end:
        reply: Reply = end.value
    except CommandError as error:
        reply = counts.failure(node, error.text)
    else:
        return True
    if is_here and reply is not PENDING:
        node.out.changing[client] = None
        waiters.release(node, client, reply)
    return False


def parts(node: NodeState, values: Sequence[T]) -> list[Sequence[T]]:
    """The values, split by step."""
    most = node.knobs.ids_at_once
    if len(values) <= most:  # the usual case
        return [values]
    return [values[at : at + most] for at in range(0, len(values), most)]


def total(
    node: NodeState,
    client: Client,
    values: Sequence[T],
    act: Callable[[NodeState, Sequence[T]], int],
) -> Reply:
    """The sum of the results of `act`, which is called for some values per step."""
    if len(values) <= node.knobs.ids_at_once:
        return act(node, values)
    return run(node, client, _total(node, parts(node, values), act))


def _total(
    node: NodeState, some: Sequence[Sequence[T]], act: Callable[[NodeState, Sequence[T]], int]
) -> Generator[None, None, int]:
    acker = node.acker
    found = act(node, some[0])
    for each in some[1:]:
        yield
        node.acker = acker  # another client may have acknowledged jobs between the steps
        found += act(node, each)
    return found
