"""Pipelines: consecutive requests of one client, with the effects of `Machine.request` for each.

Requests in a pipeline are mostly alike. For a run of equal plain commands (`Command.is_plain`),
admission is checked once, and the command's row and counters are looked up once: plain commands do
not affect these checks, except for the memory in use, which is checked each time. This halves the
time of a pipeline of PINGs. `Machine.request` handles requests that are not plain.

Sets `Client.active` and `command`, `Outbox.changing` and `Stats.commands_processed`.
"""

from collections.abc import Callable, Sequence
from typing import Final

from disque_trio.statemachine import counts, delivery, sessions, timing
from disque_trio.statemachine.admission import must_check
from disque_trio.statemachine.base import PENDING, CommandError, Reply
from disque_trio.statemachine.client import Client, ReplyMode
from disque_trio.statemachine.commands.rows import Command
from disque_trio.statemachine.state import NodeState

_ON: Final = ReplyMode.ON


def take(
    node: NodeState,
    find: Callable[[bytes], Command | None],
    client: Client,
    requests: Sequence[list[bytes]],
    clock: Callable[[], int],
) -> int:
    """Handle the leading plain requests, while the client is accepted. Returns their number."""
    if client.reply_mode is not _ON or must_check(node, client):
        return 0
    client.active = node.mono
    taken, count = 0, len(requests)
    while taken < count and sessions.accepts(node, client):
        row = find(requests[taken][0])
        if row is None or not row.is_plain:
            break
        run = _run(node, client, row, requests[taken:] if taken else requests, clock)
        if not run:
            break
        client.command = row.name
        if row.may_change:
            node.out.changing[client] = None
        taken += run
    node.stats.commands_processed += taken
    return taken


def _run(
    node: NodeState,
    client: Client,
    row: Command,
    requests: Sequence[list[bytes]],
    clock: Callable[[], int],
) -> int:
    """Handle the leading requests with the same command. Returns their number."""
    name, handler, least, most = requests[0][0], row.handler, row.least, row.most
    memory, replies = node.memory, node.out.replies
    slow_ns = timing.slow_ns(node.config)
    taken = 0
    began = ended = clock()
    for args in requests:
        if args[0] != name or not least <= len(args) <= most or memory.held > memory.hard:
            break
        try:
            reply: Reply = handler(node, client, args)
        except (CommandError, MemoryError) as error:
            reply = counts.refusal(node, error, is_whole=row.is_whole(node, args))
        if reply is not PENDING:
            replies.append((client, reply))
        if node.ready:
            delivery.serve_ready(node)
        taken += 1
        started, ended = ended, clock()
        if ended - started >= slow_ns:
            timing.note_if_slow(node, row, args, ended - started)
        if reply is PENDING and not sessions.accepts(node, client):
            break
    if taken:
        timing.count(node, row, taken, ended - began)
    return taken
