"""Commands about the server itself: ECHO, AUTH, SELECT, TIME, SHUTDOWN, MONITOR, DEBUG
(original 2.14).

Owns `Client.authenticated`, and `wrong_passwords` of clients and `Stats`; adds to
`Outbox.changing`.
"""

import hmac
import math
from collections.abc import Callable, Sequence
from typing import Final

from disque_trio.statemachine import journaling, recovery, send, sessions
from disque_trio.statemachine.base import (
    OK,
    SILENCE,
    SYNTAX_ERROR,
    CommandError,
    Failure,
    Millis,
    Reply,
    Status,
)
from disque_trio.statemachine.chores import (
    ReadJournal,
    RewriteConfig,
    RewriteJournal,
    Shutdown,
    Sleep,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Link, Peer
from disque_trio.statemachine.commands import latency, parse, slowlog
from disque_trio.statemachine.commands.usage import mistake, wrong_number
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.records import Record
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.suggestions import shown
from disque_trio.statemachine.values import encode

_LONGEST_S: Final = 1 << 30
"""34 years: the value must fit system calls, also in milliseconds."""
_NOT_OFFERED: Final = b"ERR This server offers no command that crashes it on purpose"
_ESCAPES: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0x100))} | {
    ord("\a"): r"\a",
    ord("\b"): r"\b",
    ord("\t"): r"\t",
    ord("\n"): r"\n",
    ord("\r"): r"\r",
    ord('"'): r"\"",
    ord("\\"): r"\\",
}
"""Escapes of special bytes in double-quoted text."""


DEBUG_USAGE: Final = (
    "FLUSHALL | LOADAOF | SLEEP seconds | ERROR text | STRUCTSIZE | RESTART [ms]"
    " | CRASH-AND-RECOVER [ms]"
)
DEFAULT_USER: Final = b"default"
"""The user that current Redis clients send if they are configured with only a password."""


def echo(_node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """ECHO text."""
    return args[1]


def select(_node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """SELECT 0, for Redis clients that are configured with a database number."""
    if parse.integer(args[1], b"ERR invalid DB index", name=b"SELECT"):
        raise CommandError(
            b"ERR DB index is out of range: there is database 0 alone, not %b; keep applications"
            b" apart by the names of their queues" % shown(args[1])
        )
    return OK


def auth(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """AUTH [user] password."""
    if len(args) > 3:
        raise CommandError(wrong_number("auth", "[user] password"))
    log_in(node, client, args[-1], user=args[1] if len(args) == 3 else DEFAULT_USER)
    return OK


def log_in(node: NodeState, client: Client, candidate: bytes, *, user: bytes) -> None:
    """Authenticate the client. Raises CommandError. A wrong password or user name revokes an
    earlier authentication, so a client that fails to switch users does not keep the rights of
    `default`."""
    password = node.config.requirepass
    if not password:
        raise CommandError(b"ERR Client sent AUTH, but no password is set")
    is_right = hmac.compare_digest(candidate, password)
    client.authenticated = is_right and user == DEFAULT_USER
    if not is_right:
        node.stats.wrong_passwords += 1
        client.wrong_passwords += 1
    if user != DEFAULT_USER:
        raise CommandError(
            b"WRONGPASS invalid username-password pair or user is disabled: the only user is"
            b" 'default'; give that name or none"
        )
    if not is_right:
        raise CommandError(b"ERR invalid password")


def log_out(client: Client) -> None:
    """RESET: the client must authenticate again."""
    client.authenticated = False


def time(node: NodeState, _client: Client, _args: list[bytes]) -> Reply:
    """TIME: seconds and microseconds of the wall clock."""
    seconds, millis = divmod(node.wall, 1000)
    return [b"%d" % seconds, b"%d" % (millis * 1000 + node.micros)]


def shutdown(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """SHUTDOWN: pending output is written, then the process ends."""
    if len(args) > 2 or (len(args) == 2 and args[1].upper() != b"REWRITE-AOF"):
        raise CommandError(SYNTAX_ERROR + b": SHUTDOWN takes REWRITE-AOF or nothing")
    # While the journal is being loaded, it is complete, but the jobs in memory are not.
    rewrite = len(args) == 2 and node.refusal is not recovery.LOADING
    return sessions.ask(node, client, Shutdown(rewrite_journal=rewrite), _not_shut_down)


def _not_shut_down(_node: NodeState, _client: Client, _error: str) -> Reply:
    return Failure(b"ERR Errors trying to SHUTDOWN. Check logs.")


def monitor(node: NodeState, client: Client, _args: list[bytes]) -> Reply:
    """MONITOR: stream every command that is executed; a repeated request has no effect."""
    if client.is_monitor:
        return SILENCE
    sessions.watch(node, client)
    return OK


def show_to_monitors(node: NodeState, client: Client, args: Sequence[bytes]) -> None:
    """Send a command that is about to be executed to all monitors."""
    line = Status(monitor_line(node, client, args))
    for monitor in node.monitors.values():
        send.answer(node, monitor, line)


def monitor_line(node: NodeState, client: Client, args: Sequence[bytes]) -> bytes:
    """The line of a command for monitors: time, client address, quoted arguments."""
    seconds, millis = divmod(node.wall, 1000)
    words = b" ".join(map(_quote, args))
    return b"%d.%06d [%b] %b" % (seconds, millis * 1000 + node.micros, client.address, words)


def _quote(text: bytes) -> bytes:
    return b'"%b"' % text.decode("latin-1").translate(_ESCAPES).encode()


def loadjob(_node: NodeState, _client: Client, _args: list[bytes]) -> Reply:
    """LOADJOB is a record of append-only files, not a request."""
    raise CommandError(b"ERR LOADJOB is a special command only processed from AOF")


def bgrewriteaof(node: NodeState, client: Client, _args: list[bytes]) -> Reply:
    """BGREWRITEAOF."""
    return sessions.ask(node, client, RewriteJournal(), _rewriting)


def _rewriting(_node: NodeState, _client: Client, error: str | None) -> Reply:
    if error is not None:
        raise CommandError(b"ERR %b" % encode(error))
    return Status(b"Background append only file rewriting started")


def debug(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """DEBUG FLUSHALL | LOADAOF | SLEEP | ERROR | STRUCTSIZE | RESTART | CRASH-AND-RECOVER."""
    match [args[1].lower(), *args[2:]]:
        case [b"flushall"]:
            sessions.flush(node)
            node.out.changing[client] = None
            return OK
        case [b"loadaof"]:
            if not node.config.appendonly:
                raise CommandError(b"ERR There is no append-only file: appendonly is no")
            return sessions.ask(node, client, ReadJournal(), _load_anew)
        case [b"sleep", seconds]:
            return sessions.ask(node, client, Sleep(_seconds(seconds)), _slept(node, args))
        case [b"error", text]:
            return Failure(text.replace(b"\r", b" ").replace(b"\n", b" "))
        case [b"structsize"]:
            kinds = (Job, Queue, Client, Peer, Link)
            return " ".join(
                f"{kind.__name__.lower()}:{kind.__basicsize__}" for kind in kinds
            ).encode()
        case [b"restart" | b"crash-and-recover" as how, *delay] if len(delay) < 2:
            return _restart(node, client, graceful=how == b"restart", delay=_delay(delay))
        case [b"segfault" | b"assert" | b"oom"]:
            raise CommandError(_NOT_OFFERED)
    raise CommandError(
        b"ERR Unknown DEBUG subcommand or wrong number of arguments for '%b': %b"
        % (args[1], mistake("DEBUG", DEBUG_USAGE, args))
    )


def _load_anew(node: NodeState, _client: Client, found: list[Record] | str) -> Reply:
    """Replace all jobs with those of the journal, without writing records (original, defect 9)."""
    if isinstance(found, str):
        raise CommandError(b"ERR %b" % encode(found))
    sessions.flush(node)
    journaling.unwrite(node)
    recovery.load(node, found)
    recovery.finish(node, len(found) + 1)
    return OK


def _seconds(text: bytes) -> float:
    """Parse the duration of a sleep: a finite number that is not negative."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise CommandError(
            b"ERR value is not a valid float: %b is no number of seconds" % shown(text)
        )
    return min(seconds, _LONGEST_S)


def _slept(node: NodeState, args: Sequence[bytes]) -> Callable[[NodeState, Client, None], Reply]:
    """The continuation of DEBUG SLEEP: it is recorded as a slow command, because it blocked the
    node."""
    started = node.mono

    def then(node: NodeState, _client: Client, _outcome: None) -> Reply:
        took = node.mono - started
        slowlog.record(node, args, took * 1000)
        latency.record(node, b"command", took)
        return OK

    return then


def _delay(words: Sequence[bytes]) -> Millis:
    return (
        min(max(0, parse.integer(words[0], name=b"milliseconds")), _LONGEST_S * 1000)
        if words
        else 0
    )


def _restart(node: NodeState, client: Client, *, graceful: bool, delay: Millis) -> Reply:
    """Execute the process again. A graceful restart first saves the configuration, if it has a
    file."""
    again = Shutdown(restart=True, graceful=graceful, delay=delay)
    if not graceful or not node.facts.config_file:
        return sessions.ask(node, client, again, _not_restarted)

    def saved(node: NodeState, client: Client, error: str | None) -> Reply:
        if error is not None:
            return _not_restarted(node, client, error)
        return sessions.ask(node, client, again, _not_restarted)

    return sessions.ask(node, client, RewriteConfig(), saved)


def _not_restarted(_node: NodeState, _client: Client, error: str) -> Reply:
    return Failure(b"ERR The server could not be restarted: %b" % error.encode())
