"""Requests that are not in the command table: QUIT, transactions, commands of Redis, misspelled
names.

There are no transactions. A client may pipeline MULTI, its requests and EXEC, so refusing MULTI is
not enough: the node executes nothing until EXEC, DISCARD or RESET. There is no time limit, because
the rest of a pipeline may arrive at any time after MULTI.
"""

from collections.abc import Iterable
from typing import Final

from disque_trio.statemachine import sessions
from disque_trio.statemachine.base import OK, Failure, Reply
from disque_trio.statemachine.client import Client, ReplyMode
from disque_trio.statemachine.commands.rows import Command
from disque_trio.statemachine.foreign_protocols import protocol_of
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.suggestions import did_you_mean, shown

_PLAIN_INSTEAD: Final = b"use a plain pipeline (redis-py: pipeline(transaction=False))"
_NO_TRANSACTIONS: Final = b"there are no transactions here"
_NOT_EXECUTED: Final = Failure(
    b"ERR not executed: the MULTI before it was refused; send EXEC, DISCARD or RESET to go on, and "
    + _PLAIN_INSTEAD
)
_ABORTED: Final = {
    b"exec": Failure(
        b"EXECABORT Transaction discarded because of previous errors: MULTI was refused, and"
        b" nothing since then was executed; " + _PLAIN_INSTEAD
    ),
    b"discard": Failure(
        b"ERR DISCARD without MULTI: it was refused, and nothing since then was executed"
    ),
}
_NO_KEYS: Final = b": this is a job queue without keys; ADDJOB, GETJOB and ACKJOB are its commands"
_NO_CHANNELS: Final = b": there are no channels here; wait for jobs with GETJOB"
_NO_SCRIPTS: Final = b": there are no scripts here"
_OF_REDIS: Final[dict[bytes, bytes]] = {
    b"multi": b": " + _NO_TRANSACTIONS + b", and nothing up to EXEC is executed; " + _PLAIN_INSTEAD,
    **dict.fromkeys((b"watch", b"unwatch"), b": " + _NO_TRANSACTIONS + b"; " + _PLAIN_INSTEAD),
    **dict.fromkeys(
        (b"subscribe", b"psubscribe", b"ssubscribe", b"unsubscribe", b"punsubscribe",
         b"sunsubscribe", b"publish", b"spublish", b"pubsub"),
        _NO_CHANNELS,
    ),
    **dict.fromkeys(
        (b"eval", b"evalsha", b"eval_ro", b"evalsha_ro", b"script", b"fcall", b"fcall_ro",
         b"function"),
        _NO_SCRIPTS,
    ),
    **dict.fromkeys(
        (b"scan", b"keys", b"randomkey"),
        b": there are no keys here; QSCAN goes through the queues, JSCAN through the jobs",
    ),
    **dict.fromkeys(
        (b"get", b"set", b"del", b"exists", b"expire", b"ttl", b"type", b"incr", b"mget", b"mset",
         b"dbsize", b"flushall", b"flushdb", b"lpush", b"rpush", b"lpop", b"rpop", b"blpop",
         b"brpop", b"brpoplpush", b"llen", b"lrange", b"hset", b"hget", b"hgetall", b"sadd",
         b"zadd", b"xadd", b"xread", b"xreadgroup", b"xack"),
        _NO_KEYS,
    ),
}  # fmt: skip
"""Advice for commands of Redis that do not exist here."""


def expels(node: NodeState, client: Client, args: list[bytes]) -> bool:
    """Disconnect the client if the request belongs to another protocol. Returns whether it does."""
    if protocol := protocol_of(args):
        sessions.expel(node, client, protocol, args[0])
    return bool(protocol)


def is_held(client: Client) -> bool:
    """Has the client sent MULTI, which was refused, and no EXEC yet?"""
    return client.reply_mode in (ReplyMode.REFUSED, ReplyMode.REFUSED_OFF)


def refuse_held(client: Client, args: list[bytes], row: Command | None) -> Failure | None:
    """The error for a request of a client that `is_held`; None for RESET and QUIT, which are
    executed."""
    name = args[0].lower()
    if row is None and name in _ABORTED:
        return _ABORTED[name]
    if (row is None and name == b"quit") or (row is not None and row.name == "reset"):
        return None
    return _NOT_EXECUTED


def after(client: Client, args: list[bytes], row: Command | None) -> None:
    """Update whether the client `is_held`, after the reply to a request."""
    name = args[0].lower()
    if row is not None:
        return
    if name == b"multi":
        sessions.refuse_transaction(client)
    elif name in _ABORTED and is_held(client):
        sessions.end_transaction(client)


def answer(node: NodeState, client: Client, name: bytes, known: Iterable[bytes]) -> Reply:
    """The reply to a request whose name is not among the `known`."""
    word = name.lower()
    if word == b"quit":
        sessions.close(node, client)
        return OK
    if word in _ABORTED:
        return Failure(b"ERR %b without MULTI: %b" % (word.upper(), _NO_TRANSACTIONS))
    hint = _OF_REDIS.get(word) or did_you_mean(word, known)
    return Failure(b"ERR unknown command %b%b" % (shown(name), hint))
