"""COMMAND (reference 2.14): the command table, as clients read it."""

from collections.abc import Mapping

from disque_trio.statemachine.base import CommandError, Reply, Status
from disque_trio.statemachine.commands.rows import Command


def describe_table(rows: Mapping[str, Command], args: list[bytes]) -> Reply:
    """COMMAND, COMMAND COUNT and COMMAND INFO over a table."""
    if len(args) == 1:
        return [_describe(row) for row in rows.values()]
    subcommand = args[1].upper()
    if subcommand == b"COUNT" and len(args) == 2:
        return len(rows)
    if subcommand == b"INFO":
        names = (name.decode("latin-1").lower() for name in args[2:])
        return [_describe(rows[name]) if name in rows else None for name in names]
    raise CommandError(b"ERR Unknown subcommand or wrong number of arguments.")


def _describe(row: Command) -> Reply:
    """Name, arity, flags, and where keys stand: nowhere."""
    flags: list[Reply] = [Status((flag.name or "").lower().encode()) for flag in row.flags]
    return [row.name.encode(), row.arity, flags, 0, 0, 0]
