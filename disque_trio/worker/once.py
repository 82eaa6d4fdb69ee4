"""Effects in a SQL database that happen once, although a job may be delivered several times.

A row with the job's key is inserted in the transaction of the effect, so both are committed or
neither is. A mark in the queue cannot guarantee that, because both sides of a partition may deliver
a job.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, Protocol

TABLE: Final = "disque_once"
CREATE_TABLE: Final = (
    f"CREATE TABLE IF NOT EXISTS {TABLE} (name VARCHAR(512) PRIMARY KEY, claimed_at BIGINT)"
)
"""Creates the table, unless it exists. `claimed_at` is in Unix seconds, for deleting old rows: a
job may be redelivered during all of its TTL, and after REDRIVE."""

_MARKS: Final = {
    "qmark": "?, ?",
    "format": "%s, %s",
    "pyformat": "%(name)s, %(at)s",
    "numeric": ":1, :2",
    "named": ":name, :at",
}
"""The parameters of the statement, by the `paramstyle` of the module."""


class Cursor(Protocol):
    """The methods used of a DB-API 2.0 cursor."""

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement has changed."""
        ...

    def execute(self, statement: str, parameters: Any, /) -> object:
        """Run a statement."""
        ...

    def close(self) -> object:
        """Close the cursor."""
        ...


class Connection(Protocol):
    """The methods used of a DB-API 2.0 connection (PEP 249)."""

    def cursor(self) -> Cursor:
        """A new cursor."""
        ...


def claim(
    connection: Connection, name: str, now: float, *, paramstyle: str = "qmark", table: str = TABLE
) -> bool:
    """Is this the first transaction that claims this name? Returns False if a committed one has. If
    another transaction with the name is in progress, the database waits for it. Commits nothing.

    `paramstyle` is that of the connection's module. The database must support `INSERT … ON CONFLICT
    DO NOTHING`, as SQLite (3.24) and PostgreSQL do. Raises `ValueError` for an unknown `paramstyle`
    or an invalid `table`.
    """
    if paramstyle not in _MARKS:
        raise ValueError(f"paramstyle={paramstyle!r} must be one of {', '.join(_MARKS)}")
    if not re.fullmatch(r"\w+(\.\w+)?", table):
        raise ValueError(f"table={table!r} is not the name of a table")
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
