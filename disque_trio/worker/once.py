"""Effects in a SQL database that happen once, though a job may be delivered several times.

A row with the job's key is written in the transaction of the effect. So both are there, or neither
is. What is kept only in the queue cannot promise that: both sides of a partition may deliver a job.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, Protocol

TABLE: Final = "disque_once"
CREATE_TABLE: Final = (
    f"CREATE TABLE IF NOT EXISTS {TABLE} (name VARCHAR(512) PRIMARY KEY, claimed_at BIGINT)"
)
"""Makes the table, unless it is there. `claimed_at` is in Unix seconds, so that old rows can be
deleted: a job may come again during all of its TTL, and after REDRIVE."""

_MARKS: Final = {
    "qmark": "?, ?",
    "format": "%s, %s",
    "pyformat": "%(name)s, %(at)s",
    "numeric": ":1, :2",
    "named": ":name, :at",
}
"""How the parameters of a statement are written, by the `paramstyle` of the module."""


class Cursor(Protocol):
    """What is used of a cursor of a DB-API 2.0 module."""

    @property
    def rowcount(self) -> int:
        """How many rows the statement has changed."""
        ...

    def execute(self, statement: str, parameters: Any, /) -> object:
        """Run a statement."""
        ...

    def close(self) -> object:
        """It is not needed any more."""
        ...


class Connection(Protocol):
    """What is used of a connection of a DB-API 2.0 module (PEP 249)."""

    def cursor(self) -> Cursor:
        """A new cursor."""
        ...


def claim(
    connection: Connection, name: str, now: float, *, paramstyle: str = "qmark", table: str = TABLE
) -> bool:
    """Is this the first transaction with this name? It is not if one that was committed had it; one
    that is under way is waited for. Commits nothing.

    `paramstyle` is that of the module of the connection. The database must know `INSERT … ON
    CONFLICT DO NOTHING`, as SQLite (3.24) and PostgreSQL do.
    """
    if paramstyle not in _MARKS:
        raise ValueError(f"paramstyle={paramstyle!r} must be one of {', '.join(_MARKS)}")
    if not re.fullmatch(r"\w+(\.\w+)?", table):
        raise ValueError(f"table={table!r} is no name of a table")
    parameters: Sequence[Any] | dict[str, Any] = (name, int(now))
    if paramstyle in ("pyformat", "named"):
        parameters = {"name": name, "at": int(now)}
    cursor = connection.cursor()
    try:
        cursor.execute(
            f"INSERT INTO {table} (name, claimed_at) VALUES ({_MARKS[paramstyle]}) "
            "ON CONFLICT DO NOTHING",
            parameters,
        )
        return cursor.rowcount == 1
    finally:
        cursor.close()
