"""COMMAND (original 2.14): the command table for clients.

In RESP2, a command has the six elements of the original; in RESP3, the ten of current Redis, with
sets and maps.
"""

from collections.abc import Mapping
from typing import Final

from disque_trio.statemachine.base import (
    SYNTAX_ERROR,
    CommandError,
    Reply,
    Status,
    map_for,
    set_for,
)
from disque_trio.statemachine.commands.rows import Command
from disque_trio.statemachine.commands.usage import Form, Part, forms, mistake
from disque_trio.statemachine.pattern import matches

Rows = Mapping[str, Command]
USAGE: Final = "[COUNT | INFO name ... | LIST | DOCS name ... | GETKEYS word ...]"
_GROUPS: Final = (b"module", b"aclcat")
"""Filters of COMMAND LIST that match no command, because there are neither modules nor
categories."""
_NAME: Final = b"name"
_TYPE: Final = b"type"


def describe_table(rows: Rows, args: list[bytes], protocol: int) -> Reply:
    """COMMAND and its subcommands, for the rows of a command table."""
    if len(args) == 1:
        return [_describe(row, protocol) for row in rows.values()]
    match [args[1].lower(), *args[2:]]:
        case [b"count"]:
            return len(rows)
        case [b"info", *names]:
            found = [rows.get(_key(name)) for name in names]
            return [None if row is None else _describe(row, protocol) for row in found]
        case [b"list", *filters]:
            return _names(rows, filters)
        case [b"docs", *names]:
            keys = list(map(_key, names)) or list(rows)
            known = [rows[key] for key in keys if key in rows]
            return map_for(protocol, {row.name.encode(): _document(row, protocol) for row in known})
        case [b"getkeys", name, *words]:
            return _keys(rows.get(_key(name)), 1 + len(words))
    text = b"ERR Unknown subcommand or wrong number of arguments."
    raise CommandError(b"%b (%b)" % (text, mistake("COMMAND", USAGE, args)))


def _key(name: bytes) -> str:
    return name.decode("latin-1").lower()


def _describe(row: Command, protocol: int) -> Reply:
    """Name, arity, flags, and key positions, which are zeros. RESP3 adds the other elements of
    Redis, all empty: access categories, tips, key specifications, subcommands."""
    flags: list[Reply] = [Status((flag.name or "").lower().encode()) for flag in row.flags]
    six: list[Reply] = [row.name.encode(), row.arity, set_for(protocol, flags), 0, 0, 0]
    if protocol == 2:
        return six
    return [*six, *(set_for(protocol, []) for _ in range(3)), []]


def _names(rows: Rows, filters: list[bytes]) -> Reply:
    """COMMAND LIST [FILTERBY PATTERN pattern]."""
    names = [row.name.encode() for row in rows.values()]
    match [word.lower() for word in filters]:
        case []:
            return list[Reply](names)
        case [b"filterby", b"pattern", pattern]:
            return [name for name in names if matches(pattern, name)]
        case [b"filterby", kind, _] if kind in _GROUPS:
            return []
    raise CommandError(SYNTAX_ERROR + b": COMMAND LIST [FILTERBY PATTERN pattern]")


def _keys(row: Command | None, words: int) -> Reply:
    """COMMAND GETKEYS always raises CommandError, because queues are not keys."""
    if row is None:
        raise CommandError(b"ERR Invalid command specified")
    if not row.takes(words):
        raise CommandError(b"ERR Invalid number of arguments specified for command")
    raise CommandError(b"ERR The command has no key arguments")


# COMMAND DOCS.


def _document(row: Command, protocol: int) -> Reply:
    """A command with one form has arguments; a command with several has one subcommand per form."""
    possible = forms(row.usage) if row.usage else [()]
    if len(possible) == 1:
        return _page(row, possible[0], protocol)
    pages = {
        f"{row.name}|{form[0].words[0].lower()}".encode(): _page(row, form[1:], protocol)
        for form in possible
    }
    return _page(row, (), protocol, map_for(protocol, pages))


def _page(row: Command, form: Form, protocol: int, subcommands: Reply = None) -> Reply:
    text: dict[bytes, Reply] = {b"summary": row.summary.encode(), b"group": b"disque"}
    if form:
        text[b"arguments"] = [_argument(part, protocol) for part in form]
    if subcommands is not None:
        text[b"subcommands"] = subcommands
    return map_for(protocol, text)


def _argument(part: Part, protocol: int) -> Reply:
    """One part of a usage line: a keyword, a value, or both."""
    flags = ["optional"] * part.is_optional + ["multiple"] * part.is_repeated
    first, *rest = part.words
    if (rest and not part.is_keyword) or len(rest) > 1:
        inner = [_argument(Part((word,)), protocol) for word in part.words]
        return _entry(first.lower(), "block", protocol, flags, arguments=inner)
    if rest:
        return _entry(rest[0], "string", protocol, flags, token=first)
    if not part.is_keyword:
        return _entry(first, "string", protocol, flags)
    if len(part.choices) == 1:
        return _entry(first.lower(), "pure-token", protocol, flags, token=first)
    tokens = [_entry(each.lower(), "pure-token", protocol, token=each) for each in part.choices]
    return _entry("choice", "oneof", protocol, flags, arguments=tokens)


def _entry(
    name: str,
    kind: str,
    protocol: int,
    flags: list[str] | None = None,
    *,
    token: str = "",
    arguments: list[Reply] | None = None,
) -> Reply:
    text: dict[bytes, Reply] = {_NAME: name.encode(), _TYPE: kind.encode()}
    if kind not in {"oneof", "block", "pure-token"}:
        text[b"display_text"] = name.encode()
    if token:
        text[b"token"] = token.encode()
    if flags:
        text[b"flags"] = set_for(protocol, [Status(flag.encode()) for flag in flags])
    if arguments:
        text[b"arguments"] = arguments
    return map_for(protocol, text)
