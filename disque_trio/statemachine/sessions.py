"""Client connections: connecting, pausing, chores, disconnecting (original 1.4 to 1.6).

Owns `NodeState.clients`, `monitors`, `paused`, `paused_until`, `last_client`, and `refusal` while
the journal cannot be written; `Client.is_closing`,
`is_monitor`, `reply_mode`, `then`; `Outbox.chores`, `closes`, `expelled`, `resumed`; and
`Stats.connections_received`.
"""

from collections.abc import Callable
from typing import Any

from disque_trio.statemachine import (
    key_index,
    lifecycle,
    metrics,
    offering,
    replication,
    requeue,
    results,
    send,
    waiters,
)
from disque_trio.statemachine.base import NULL_ARRAY, PENDING, CommandError, Failure, Millis, Reply
from disque_trio.statemachine.chores import Chore
from disque_trio.statemachine.client import WAITS, Blocked, Client, ReplyMode
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.timers import Timed
from disque_trio.statemachine.values import encode


def connect(node: NodeState, address: bytes, *, is_unix: bool) -> Client | None:
    """Add a new client. Returns None if there are too many."""
    if len(node.clients) >= node.config.maxclients:
        metrics.count_turned_away(node, "maxclients")
        return None
    node.last_client += 1
    node.stats.connections_received += 1
    client = Client(
        id=node.last_client,
        address=address,
        created=node.mono,
        active=node.mono,
        is_unix=is_unix,
    )
    node.clients[client.id] = client
    waiters.watch_idle(node, client)
    return client


def disconnect(node: NodeState, client: Client) -> None:
    """The connection has ended: remove the client, and the jobs for whose replicas it waits."""
    replication.abandon(node, client)
    waiters.unblock(node, client)
    if client.tied:
        requeue.end_soon(node, client)
    node.timers.disarm(client)
    client.is_closing = True
    node.clients.pop(client.id, None)
    node.monitors.pop(client.id, None)
    node.paused.pop(client.id, None)


def close(node: NodeState, client: Client) -> None:
    """Disconnect the client once its output has been written."""
    if not client.is_closing:
        client.is_closing = True
        node.out.closes.append(client)


def expel(node: NodeState, client: Client, protocol: str, word: bytes) -> None:
    """Disconnect a client that uses another protocol, as `word` shows. Its other requests are not
    executed."""
    metrics.count_turned_away(node, protocol)
    node.out.expelled.append((client, protocol, word))
    close(node, client)


def accepts(node: NodeState, client: Client) -> bool:
    """May a request of this client be passed in now? After CLIENT PAUSE, the client is resumed."""
    if client.blocked is not Blocked.NO or client.is_closing:
        return False
    if node.mono < node.paused_until:
        node.paused[client.id] = client
        return False
    return True


def pause(node: NodeState, duration: Millis) -> None:
    """CLIENT PAUSE: a new pause replaces an older one only if it ends later."""
    until = node.mono + duration
    if until > node.paused_until:
        node.paused_until = until
        node.timers.arm(node.pause_timer, until)


def on_pause_end(node: NodeState, _timer: Timed) -> None:
    """Resume the clients that were paused."""
    node.out.resumed.extend(node.paused.values())
    node.paused.clear()


def watch(node: NodeState, client: Client) -> None:
    """MONITOR: send every command to this client from now on."""
    client.is_monitor = True
    node.monitors[client.id] = client


def start_anew(node: NodeState, client: Client) -> None:
    """RESET: end MONITOR and CLIENT REPLY modes."""
    client.is_monitor = False
    client.reply_mode = ReplyMode.ON
    node.monitors.pop(client.id, None)


def refuse_transaction(client: Client) -> None:
    """MULTI was refused: refuse the requests up to EXEC, too."""
    is_off = client.reply_mode is ReplyMode.OFF
    client.reply_mode = ReplyMode.REFUSED_OFF if is_off else ReplyMode.REFUSED


def end_transaction(client: Client) -> None:
    """EXEC or DISCARD has arrived: execute requests again."""
    is_off = client.reply_mode is ReplyMode.REFUSED_OFF
    client.reply_mode = ReplyMode.OFF if is_off else ReplyMode.ON


def on_due(node: NodeState, client: Client) -> None:
    """A client's timer: its wait has timed out, its job is sent to one more node, or it has been
    idle."""
    if client.blocked is Blocked.COPIES:
        replication.on_client_due(node, client)
    elif client.blocked in WAITS and client.deadline:
        waiters.time_out(node, client)
    elif client.blocked is Blocked.NO:
        _on_idle_due(node, client)


def _on_idle_due(node: NodeState, client: Client) -> None:
    limit = node.config.timeout_s * 1000
    if not limit or client.is_monitor:
        return
    if node.mono - client.active > limit:
        close(node, client)
    else:
        waiters.watch_idle(node, client)


def ask(
    node: NodeState,
    client: Client,
    chore: Chore,
    then: Callable[[NodeState, Client, Any], Reply],
) -> Reply:
    """Have the driver carry out a chore; `then` makes the reply from its outcome."""
    waiters.block(node, client, Blocked.CHORE, 0)
    client.then = then
    node.out.chores.append((client, chore))
    return PENDING


def done(node: NodeState, client: Client, outcome: object) -> None:
    """Handle the outcome of a chore. No effect if the client has disconnected."""
    then = client.then
    if then is None or client.id not in node.clients:
        return
    waiters.unblock(node, client)
    client.then = None
    try:
        reply = then(node, client, outcome)
    except CommandError as error:
        reply = Failure(error.text)
    if reply is not PENDING:
        send.answer(node, client, reply)
        node.out.resumed.append(client)


def refuse_writes(node: NodeState, reason: str) -> None:
    """Refuse commands that write, because the journal cannot be written. Waiting clients receive
    the error, because deliveries could not be recorded."""
    text = encode(reason)
    node.refusal = Failure(b"MISCONF Errors writing to the AOF file: %b" % text)
    waiters.release_all_for_jobs(node, node.refusal)


def allow_writes(node: NodeState) -> None:
    """Accept commands that write again."""
    node.refusal = node.cluster.refusal
    if node.refusal is None:
        offering.offer_all_anew(node)


def enter_silence(client: Client) -> None:
    """Suppress the reply of this command, if the previous one was CLIENT REPLY SKIP."""
    if client.reply_mode is ReplyMode.SKIP_NEXT:
        client.reply_mode = ReplyMode.SKIP


def leave_silence(client: Client) -> None:
    """Stop suppressing replies after this command, unless it was another SKIP."""
    if client.reply_mode is ReplyMode.SKIP:
        client.reply_mode = ReplyMode.ON


def flush(node: NodeState) -> None:
    """Remove all jobs, queues, keys and results, and reply to all waiting clients (original
    2.14)."""
    for job in list(node.jobs.values()):
        replication.drop(node, job, Cause.FLUSH)
    waiters.release_all_for_jobs(node, NULL_ARRAY)
    lifecycle.drop_queues(node)
    node.tombstones.forget_all()
    node.endings.forget_all()
    key_index.forget_all(node)
    results.forget_all(node)
