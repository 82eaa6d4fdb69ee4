"""SLOWLOG, and its entries: slow commands (original 2.14).

Owns `NodeState.slowlog`, which is a `Slowlog`.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from disque_trio.statemachine.base import OK, CommandError, Reply
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands import parse
from disque_trio.statemachine.commands.usage import mistake
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.stats import SlowEntry

USAGE: Final = "GET [n] | LEN | RESET"
_ARGS_KEPT: Final = 32
_BYTES_KEPT: Final = 128
_DEFAULT_COUNT: Final = 10


def record(node: NodeState, args: Sequence[bytes], usec: int) -> None:
    """Record a command that took at least the configured time; a negative threshold disables the
    log."""
    threshold = node.config.slowlog_log_slower_than_us
    if threshold < 0 or usec < threshold:
        return
    log = node.slowlog
    log.entries.appendleft(SlowEntry(log.next_id, node.wall // 1000, usec, _shorten(args)))
    log.next_id += 1
    while len(log.entries) > node.config.slowlog_max_len:
        log.entries.pop()


def _shorten(args: Sequence[bytes]) -> list[bytes]:
    """Truncate the arguments, because the log must not keep whole job bodies in memory."""
    if len(args) <= _ARGS_KEPT:
        return [_cut(arg) for arg in args]
    more = len(args) - _ARGS_KEPT + 1
    return [*map(_cut, args[: _ARGS_KEPT - 1]), b"... (%d more arguments)" % more]


def _cut(arg: bytes) -> bytes:
    more = len(arg) - _BYTES_KEPT
    return arg if more <= 0 else b"%b... (%d more bytes)" % (arg[:_BYTES_KEPT], more)


def slowlog(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """SLOWLOG GET [count] | LEN | RESET."""
    match [args[1].lower(), *args[2:]]:
        case [b"get"]:
            return _newest(node, _DEFAULT_COUNT)
        case [b"get", count]:
            return _newest(node, parse.integer(count, name=b"the count of SLOWLOG GET"))
        case [b"len"]:
            return len(node.slowlog.entries)
        case [b"reset"]:
            node.slowlog.entries.clear()
            return OK
    text = b"ERR Unknown SLOWLOG subcommand or wrong # of args. Try GET, RESET, LEN."
    raise CommandError(b"%b (%b)" % (text, mistake("SLOWLOG", USAGE, args)))


def _newest(node: NodeState, count: int) -> Reply:
    """The newest `count` entries; a negative count is all."""
    entries = islice(node.slowlog.entries, count if count >= 0 else None)
    return [[entry.id, entry.time_s, entry.usec, list[Reply](entry.args)] for entry in entries]
