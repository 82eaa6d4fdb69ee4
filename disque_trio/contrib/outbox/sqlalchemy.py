"""The outbox for SQLAlchemy: a table, jobs in a session or connection, and the relay of an engine.

Source: docs/worker-outbox.md, "SQLAlchemy".
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import attrs

from disque_trio.contrib.outbox.relay import Relay
from disque_trio.contrib.outbox.rows import LONGEST_KEY, LONGEST_QUEUE, TABLE, Row, rows_of
from disque_trio.worker.app import App
from disque_trio.worker.checks import shown
from disque_trio.worker.enqueue import Call

try:
    import sqlalchemy as sql
except ModuleNotFoundError as missing:
    raise ImportError(
        'disque_trio.contrib.outbox.sqlalchemy needs SQLAlchemy: pip install "disque-trio[outbox]"',
        name=missing.name,
    ) from missing

__all__ = ["Outbox"]

_SKIP_LOCKED: Final = frozenset(("postgresql", "mysql", "mariadb", "oracle"))


class Outbox:
    """An outbox in one table, which is part of the user's metadata."""

    def __init__(self, app: App[Any], metadata: Any, *, table: str = TABLE) -> None:
        """`metadata` is that of the models, so that `create_all` and Alembic create the table."""
        self.app = app
        self.table = sql.Table(
            table,
            metadata,
            sql.Column(
                "id",
                sql.BigInteger().with_variant(sql.Integer, "sqlite"),
                primary_key=True,
                autoincrement=True,
            ),
            sql.Column("key", sql.String(LONGEST_KEY), nullable=False),
            sql.Column("task", sql.String(200), nullable=False),
            sql.Column("queue", sql.String(LONGEST_QUEUE), nullable=False),
            sql.Column("body", sql.LargeBinary(1 << 24), nullable=False),
            sql.Column("options", sql.Text, nullable=False),
            sql.Column("created_at", sql.Double, nullable=False),
            sql.Column("due_at", sql.Double, nullable=False),
            sql.Column("attempts", sql.Integer, nullable=False),
            sql.Column("next_at", sql.Double, nullable=False),
            sql.Column("error", sql.Text, nullable=False),
        )

    def add(self, connection: Any, *calls: Call[Any]) -> list[str]:
        """Add these jobs when the transaction of a `Session` or `Connection` is committed. Returns
        their keys. Raises as `Task.enqueue` for invalid calls, and `ValueError` for another
        `connection`."""
        if not hasattr(connection, "execute"):
            raise ValueError(f"{shown(connection)} must be a Session or a Connection")
        rows = rows_of(calls)
        if rows:
            values = [attrs.asdict(row, filter=attrs.filters.exclude("id")) for row in rows]
            connection.execute(sql.insert(self.table), values)
        return [row.key for row in rows]

    def relay(self, engine: Any, **options: Any) -> Relay:
        """The relay for this table; `options` are those of `Relay`."""
        return Relay(self.app, _Database(engine, self.table), **options)


@attrs.frozen(eq=False)
class _Database:
    engine: Any
    table: Any

    def skips_locked(self) -> bool:
        """Does this kind of database support SKIP LOCKED?"""
        return self.engine.dialect.name in _SKIP_LOCKED

    def close(self) -> None:
        """Do nothing: the pool of the engine keeps connections."""

    @contextmanager
    def transaction(self) -> Iterator["_Transaction"]:
        """A transaction of the engine."""
        with self.engine.begin() as connection:
            yield _Transaction(connection, self.table)


@attrs.frozen(eq=False)
class _Transaction:
    connection: Any
    table: Any

    def rows(self, limit: int, now: float, *, lock: bool) -> list[Row]:
        """The rows that are due."""
        columns = self.table.c
        query = sql.select(self.table).where(columns.next_at <= now).order_by(columns.id)
        query = query.limit(limit)
        if lock:
            query = query.with_for_update(skip_locked=True)
        return [Row(**each) for each in self.connection.execute(query).mappings()]

    def delete(self, ids: Sequence[int]) -> None:
        """Delete these rows."""
        self.connection.execute(sql.delete(self.table).where(self.table.c.id.in_(ids)))

    def failed(self, row: Row) -> None:
        """Record why the job was not added."""
        changes = {"attempts": row.attempts, "next_at": row.next_at, "error": row.error}
        query = sql.update(self.table).where(self.table.c.id == row.id).values(**changes)
        self.connection.execute(query)
