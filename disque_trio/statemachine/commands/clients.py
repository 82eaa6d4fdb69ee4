"""CLIENT: lists, names and ends connections, and sets their reply mode (original 2.14).

Owns `Client.name`, `library` and `library_version`, and sets `Client.reply_mode`.
"""

from collections.abc import Generator
from typing import Final

import attrs

from disque_trio.statemachine import sessions, waiters
from disque_trio.statemachine.base import OK, SILENCE, SYNTAX_ERROR, CommandError, Lengthy, Reply
from disque_trio.statemachine.chores import ReadVitals, Vitals
from disque_trio.statemachine.client import WAITS, Blocked, Client, ReplyMode
from disque_trio.statemachine.commands import parse
from disque_trio.statemachine.commands.usage import mistake
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.suggestions import no_option, none_of, shown

_SYNTAX_ERROR: Final = (
    b"ERR Syntax error, try CLIENT (LIST | KILL ip:port | GETNAME | SETNAME connection-name)"
)
USAGE: Final = (
    "LIST [TYPE normal] [ID id ...] | INFO | ID | GETNAME | SETNAME name"
    " | SETINFO LIB-NAME|LIB-VER value | KILL filter ... | UNBLOCK id | PAUSE ms"
    " | REPLY ON|OFF|SKIP | NO-EVICT ON|OFF | NO-TOUCH ON|OFF"
)
_LIBRARY: Final = (b"lib-name", b"lib-ver")
_LONGEST_INFO: Final = 128
"""The maximum size of a library's name or version, in bytes. The node does not account for this
memory."""
_LINE_BYTES: Final = 200
"""The approximate size of a client's line, in bytes."""


def client(node: NodeState, caller: Client, args: list[bytes]) -> Reply:
    """CLIENT LIST | INFO | ID | GETNAME | SETNAME | SETINFO | KILL | UNBLOCK | PAUSE | REPLY |
    NO-EVICT | NO-TOUCH."""
    match [args[1].lower(), *args[2:]]:
        case [b"list", *filters]:
            return _ask_for_list(node, caller, filters)
        case [b"info"]:
            return sessions.ask(node, caller, ReadVitals(), _line)
        case [b"kill", address]:
            # The old form, which may end the caller's own connection.
            victims = [each for each in node.clients.values() if each.address == address]
            if not _kill(node, caller, victims):
                raise CommandError(b"ERR No such client: none has the address %b" % shown(address))
            return OK
        case [b"kill", *filters]:
            return _kill_matching(node, caller, filters)
        case [b"unblock", id]:
            victim = node.clients.get(parse.at_least(id, 0, b"ERR Invalid client ID"))
            if victim is None or victim.blocked not in WAITS:
                return 0
            waiters.time_out(node, victim)
            return 1
        case [b"pause", duration]:
            sessions.pause(node, parse.timeout(duration, b"PAUSE"))
            return OK
    return _of_itself(caller, args)


def _of_itself(caller: Client, args: list[bytes]) -> Reply:
    match [args[1].lower(), *args[2:]]:
        case [b"id"]:
            return caller.id
        case [b"getname"]:
            return caller.name or None
        case [b"setname", name]:
            return set_name(caller, name)
        case [b"setinfo", name, value]:
            return _set_info(caller, name, value)
        case [b"reply", mode]:
            return _set_reply_mode(caller, mode.lower())
        case [b"no-evict" | b"no-touch", answer] if answer.lower() in (b"on", b"off"):
            return OK  # without effect: clients are not evicted, and reads change no age
    raise CommandError(_SYNTAX_ERROR + b": " + mistake("CLIENT", USAGE, args))


def _ask_for_list(node: NodeState, caller: Client, words: list[bytes]) -> Reply:
    """LIST, LIST TYPE normal, LIST ID id [id ...]: the clients that are connected when the reply is
    made."""
    ids: list[int] | None = None
    match [word.lower() for word in words]:
        case []:
            pass
        case [b"type", kind]:
            check_type(kind)
        case [b"id", _, *_]:
            ids = [parse.integer(word, b"ERR Invalid client ID") for word in words[1:]]
        case _:
            raise CommandError(SYNTAX_ERROR + b": CLIENT LIST [TYPE normal] [ID id ...]")

    def then(node: NodeState, _caller: Client, vitals: Vitals) -> Reply:
        known = node.clients if ids is None else ids
        found = [node.clients[id] for id in known if id in node.clients]
        if len(found) <= node.knobs.peeked_at_once:
            return _lines(node, found, vitals)
        return _long_list(node, found, vitals)

    return sessions.ask(node, caller, ReadVitals(), then)


def _long_list(node: NodeState, found: list[Client], vitals: Vitals) -> Reply:
    """The lines of many clients, in several steps. Excludes clients that disconnect meanwhile."""
    made: list[bytes] = []
    some = max(node.knobs.peeked_at_once, 1)

    def parts() -> Generator[list[Reply], None, None]:
        for at in range(0, len(found), some):
            made.append(_lines(node, found[at : at + some], vitals))
            yield []
        text = b"".join(made)
        made.clear()
        yield [text]

    def left() -> tuple[int, int]:
        return len(found) * _LINE_BYTES, sum(map(len, made))

    return Lengthy(parts(), 0, left)


def _lines(node: NodeState, clients: list[Client], vitals: Vitals) -> bytes:
    return b"".join([_line(node, each, vitals) for each in clients if each.id in node.clients])


def check_type(kind: bytes) -> None:
    """Raise CommandError unless the type is `normal`, as of all clients: there are no replicas and
    no subscribers."""
    if kind.lower() != b"normal":
        raise CommandError(
            b"ERR Unknown client type %b: all clients are of type normal" % shown(kind)
        )


def _line(node: NodeState, each: Client, vitals: Vitals) -> bytes:
    """A client's line of CLIENT LIST. Pending output is counted only in `omem`, as `oll` chunks."""
    connection = vitals.connection_of(each.id)
    return b"id=%d addr=%b fd=%d name=%b age=%d idle=%d flags=%b qbuf=%d qbuf-free=%d " % (
        each.id,
        each.address,
        connection.fd,
        each.name,
        (node.mono - each.created) // 1000,
        (node.mono - each.active) // 1000,
        _flags(each),
        connection.input_bytes,
        connection.input_free,
    ) + b"obl=%d oll=%d omem=%d events=%b cmd=%b resp=%d lib-name=%b lib-ver=%b jobs=%d\n" % (
        0,
        connection.output_chunks,
        connection.output_bytes,
        connection.events,
        each.command.encode() or b"NULL",
        each.protocol,
        each.library,
        each.library_version,
        len(each.tied or ()),
    )


def _flags(each: Client) -> bytes:
    flags = {
        b"O": each.is_monitor,
        b"b": each.blocked in (*WAITS, Blocked.COPIES, Blocked.KEY),
        b"c": each.is_closing,
        b"U": each.is_unix,
    }
    return b"".join(flag for flag, is_set in flags.items() if is_set) or b"N"


def _kill_matching(node: NodeState, caller: Client, words: list[bytes]) -> Reply:
    """The new form: every filter must match, and the caller is skipped unless SKIPME is no."""
    filters = _Filters()
    if not words or len(words) % 2:
        raise CommandError(SYNTAX_ERROR + b": CLIENT KILL takes a filter and its value, in turn")
    for word, value in zip(words[::2], words[1::2], strict=True):
        filters.add(word.lower(), value)
    victims = [each for each in node.clients.values() if filters.admit(each, caller)]
    return _kill(node, caller, victims)


@attrs.define
class _Filters:
    """The filters of CLIENT KILL; None matches any client. All clients are of type normal."""

    id: int | None = None
    address: bytes | None = None
    skip_me: bool = True

    def add(self, word: bytes, value: bytes) -> None:
        """Add a filter with its value; it replaces an earlier one of the same kind. Raises
        CommandError."""
        if word == b"id":
            self.id = parse.integer(value, name=b"ID")
        elif word == b"addr":
            self.address = value
        elif word == b"skipme":
            if value.lower() not in (b"yes", b"no"):
                raise CommandError(SYNTAX_ERROR + b": SKIPME is yes or no, not " + shown(value))
            self.skip_me = value.lower() == b"yes"
        elif word == b"type":
            check_type(value)
        else:
            names = (b"ID", b"TYPE", b"ADDR", b"SKIPME")
            raise CommandError(SYNTAX_ERROR + b": " + no_option(word, b"CLIENT KILL", names))

    def admit(self, each: Client, caller: Client) -> bool:
        """Does the client match?"""
        if self.skip_me and each is caller:
            return False
        return self.id in (None, each.id) and self.address in (None, each.address)


def _kill(node: NodeState, caller: Client, victims: list[Client]) -> int:
    """Close connections: the caller's after its reply, others at once. Returns their number."""
    for victim in victims:
        sessions.close(node, victim)
        if victim is not caller:
            sessions.disconnect(node, victim)
    return len(victims)


def set_name(caller: Client, name: bytes) -> Reply:
    """Set the client's name. It is part of a line of CLIENT LIST, so it must be one word."""
    if not _is_plain(name):
        raise CommandError(
            b"ERR Client names cannot contain spaces, newlines or special characters."
        )
    caller.name = name
    return OK


def _is_plain(word: bytes) -> bool:
    return all(0x21 <= code <= 0x7E for code in word)


def _set_info(caller: Client, name: bytes, value: bytes) -> Reply:
    """The name or version of the client library, which it sends when it connects."""
    field = name.lower()
    if field not in _LIBRARY:
        raise CommandError(
            b"ERR Unrecognized option %b: there are LIB-NAME and LIB-VER" % shown(name)
        )
    if not _is_plain(value) or len(value) > _LONGEST_INFO:
        raise CommandError(
            b"ERR %b cannot contain spaces, newlines or special characters, and has at most %d"
            b" bytes" % (field, _LONGEST_INFO)
        )
    if field == b"lib-name":
        caller.library = value
    else:
        caller.library_version = value
    return OK


def _set_reply_mode(caller: Client, mode: bytes) -> Reply:
    """Only ON gets a reply. While the mode is OFF, SKIP has no effect."""
    if mode == b"on":
        caller.reply_mode = ReplyMode.ON
        return OK
    if mode == b"off":
        caller.reply_mode = ReplyMode.OFF
    elif mode != b"skip":
        raise CommandError(SYNTAX_ERROR + b": " + none_of(mode, (b"ON", b"OFF", b"SKIP")))
    elif caller.reply_mode is ReplyMode.ON:
        caller.reply_mode = ReplyMode.SKIP_NEXT
    return SILENCE
