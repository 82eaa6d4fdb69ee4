"""Rows of the outbox in the databases of Django."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
from django.db import close_old_connections, connections, transaction

from disque_trio.contrib.outbox.django.models import OutboxRow
from disque_trio.contrib.outbox.rows import Row, rows_of
from disque_trio.worker.enqueue import Call

_NAMES = tuple(field.name for field in attrs.fields(Row))


def add(calls: Iterable[Call[Any]], using: str) -> list[str]:
    """Write rows, and return the keys of their jobs."""
    rows = rows_of(calls)
    fields = [attrs.asdict(row, filter=attrs.filters.exclude("id")) for row in rows]
    OutboxRow.objects.using(using).bulk_create([OutboxRow(**each) for each in fields])
    return [row.key for row in rows]


@attrs.frozen(eq=False)
class Storage:
    """One database."""

    using: str

    def skips_locked(self) -> bool:
        """Does the database support SKIP LOCKED, according to Django?"""
        return bool(connections[self.using].features.has_select_for_update_skip_locked)

    def close(self) -> None:
        """Close the connections of this thread."""
        connections.close_all()

    @contextmanager
    def transaction(self) -> Iterator["_Transaction"]:
        """A transaction of the connection of this thread."""
        if not connections[self.using].in_atomic_block:
            close_old_connections()
        with transaction.atomic(using=self.using):
            yield _Transaction(OutboxRow.objects.using(self.using))


@attrs.frozen(eq=False)
class _Transaction:
    all: Any

    def rows(self, limit: int, now: float, *, lock: bool) -> list[Row]:
        """The rows that are due."""
        query = self.all.filter(next_at__lte=now).order_by("id")
        if lock:
            query = query.select_for_update(skip_locked=True)
        found = query.values(*_NAMES)[:limit]
        return [Row(**{**each, "body": bytes(each["body"])}) for each in found]

    def delete(self, ids: Sequence[int]) -> None:
        """Delete these rows."""
        self.all.filter(id__in=ids).delete()

    def failed(self, row: Row) -> None:
        """Record why the job was not added."""
        fields = {"attempts": row.attempts, "next_at": row.next_at, "error": row.error}
        self.all.filter(id=row.id).update(**fields)
