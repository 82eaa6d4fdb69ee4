"""The outbox: jobs of a transaction are added once, if it is committed, whatever ends the relay."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
import pytest

pytest.importorskip("sqlalchemy")

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import Session

from disque_trio.client import DisqueError
from disque_trio.contrib.outbox import relay as relays
from disque_trio.contrib.outbox.relay import Relay
from disque_trio.contrib.outbox.rows import Row, rows_of
from disque_trio.contrib.outbox.sqlalchemy import Outbox, _Transaction
from disque_trio.testing.inline.kit import Inline
from disque_trio.worker import App, JobEnqueued, NotEncodableError, TooLargeError, Zlib


@attrs.define
class Shop:
    """An app, its table in a file of SQLite, and its relay."""

    app: App[None]
    outbox: Outbox
    engine: Any
    relay: Relay

    def place(self, *numbers: int, **options: Any) -> list[str]:
        pay = self.app.tasks["pay"].using(**options)
        with Session(self.engine) as session, session.begin():
            return self.outbox.add(session, *[pay.call(each) for each in numbers])

    def rows(self) -> list[Any]:
        with self.engine.connect() as connection:
            query = sql.select(self.outbox.table).order_by(self.outbox.table.c.id)
            return list(connection.execute(query))


def opened(path: Any, **options: Any) -> Shop:
    app, metadata = App(**options), sql.MetaData()

    @app.task(name="pay", queue="cards")
    def pay(number: int) -> int:
        return number

    outbox = Outbox(app, metadata)
    engine = sql.create_engine(f"sqlite:///{path}/shop.db")
    metadata.create_all(engine)
    return Shop(app, outbox, engine, outbox.relay(engine))


@pytest.fixture
def shop(tmp_path: Any) -> Iterator[Shop]:
    found = opened(tmp_path)
    yield found
    found.engine.dispose()


def numbers(inline: Inline) -> list[Any]:
    return [job.args[0] for job in inline.jobs()]


def test_a_committed_job_is_added_and_its_row_deleted(disque_inline: Inline, shop: Shop) -> None:
    [key] = shop.place(7, priority=5, headers={"shop": "a"})
    assert disque_inline.jobs() == []

    assert shop.relay.step() == (1, 0)

    [job] = disque_inline.jobs()
    assert (job.task, job.queue, job.key, job.priority) == ("pay", "cards", key, 5)
    assert job.headers["shop"] == "a"
    assert shop.rows() == []
    [ran] = disque_inline.blocking.run_all(shop.app)
    assert (ran.result, ran.key) == (7, key)


def test_a_transaction_that_is_rolled_back_leaves_no_job(disque_inline: Inline, shop: Shop) -> None:
    def fails() -> None:
        with Session(shop.engine) as session, session.begin():
            shop.outbox.add(session, shop.app.tasks["pay"].call(7))
            raise RuntimeError("rolled back")

    with pytest.raises(RuntimeError, match="rolled back"):
        fails()
    with shop.engine.begin() as connection:
        shop.outbox.add(connection, shop.app.tasks["pay"].call(8))
        connection.rollback()

    assert shop.relay.drain() == 0
    assert disque_inline.jobs() == []


def test_rows_are_added_in_their_order_in_batches(disque_inline: Inline, shop: Shop) -> None:
    shop.place(*range(300))

    assert shop.relay.drain() == 300
    assert numbers(disque_inline) == list(range(300))


@pytest.mark.parametrize("has_run", [False, True], ids=["waits", "has run"])
def test_a_relay_that_dies_before_it_deletes_makes_no_second_job(
    disque_inline: Inline, shop: Shop, monkeypatch: pytest.MonkeyPatch, has_run: bool
) -> None:
    shop.place(1, 2, 3)
    with monkeypatch.context() as patched:
        patched.setattr(_Transaction, "delete", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            shop.relay.step()
    assert len(disque_inline.jobs()) == len(shop.rows()) == 3
    ran = disque_inline.blocking.run_all(shop.app) if has_run else []
    disque_inline.sleep(1800)

    assert shop.relay.step() == (3, 0)

    assert shop.rows() == []
    ran += disque_inline.blocking.run_all(shop.app)
    assert [each.result for each in ran] == [1, 2, 3]


def test_two_relays_that_read_the_same_rows_make_one_job_of_each(
    disque_inline: Inline, shop: Shop
) -> None:
    shop.place(*range(5))
    other = shop.outbox.relay(shop.engine)
    with shop.relay.database.transaction() as transaction:
        rows = transaction.rows(100, disque_inline.now, lock=False)
    assert other.step() == (5, 0)

    added, failed = shop.relay._add(rows)
    with shop.relay.database.transaction() as transaction:
        shop.relay._settle(transaction, added, failed)

    assert (len(added), failed) == (5, [])
    assert sorted(numbers(disque_inline)) == list(range(5))


def test_what_nodes_refuse_stays_and_is_tried_later(disque_inline: Inline, shop: Shop) -> None:
    shop.place(1, maxlen=1)
    shop.place(2, maxlen=1)
    shop.place(3)

    assert shop.relay.step() == (2, 1)
    [row] = shop.rows()
    assert row.attempts == 1
    assert "MAXLEN" in row.error
    assert shop.relay.step() == (0, 0), "it is not due yet"
    disque_inline.blocking.run_all(shop.app)
    disque_inline.sleep(2)
    assert shop.relay.step() == (1, 0)
    assert shop.rows() == []


@pytest.mark.parametrize("refused", [1, relays.AT_ONCE])
def test_what_nodes_refuse_does_not_end_a_drain(
    disque_inline: Inline, shop: Shop, refused: int
) -> None:
    shop.app.tasks["pay"].using(queue="full").blocking.enqueue(0)
    shop.place(*range(refused), queue="full", maxlen=1)
    shop.place(*range(300))

    assert shop.relay.drain() == 300
    assert len(disque_inline.jobs()) == 301
    assert [row.attempts for row in shop.rows()] == [1] * refused


@pytest.mark.parametrize(
    ("steps", "pauses"),
    [
        ([(relays.AT_ONCE - 1, 1)], []),
        ([(0, relays.AT_ONCE)] * 2, [relays.POLL_S] * 2),
        ([(1, 1)], [relays.POLL_S]),
        ([(0, 1)] * 2, [1.0, 2.0]),
    ],
    ids=["a full batch", "all of it refused", "less", "less, all refused"],
)
def test_a_relay_pauses_only_where_no_more_is_due_or_nothing_is_added(
    shop: Shop,
    monkeypatch: pytest.MonkeyPatch,
    steps: list[tuple[int, int]],
    pauses: list[float],
) -> None:
    waits, left = list[float](), [*steps, (0, 0)]

    def step(_: Relay) -> tuple[int, int]:
        if len(left) == 1:
            shop.relay.stop()
        return left.pop(0)

    monkeypatch.setattr(Relay, "step", step)
    monkeypatch.setattr(shop.relay._stopped, "wait", waits.append)
    shop.relay.run()

    assert waits[:-1] == pauses


def test_pauses_of_a_row_grow_to_five_minutes() -> None:
    row = Row(
        key="k", task="t", queue="q", body=b"", options="{}", created_at=0, due_at=0, attempts=99
    )
    again = relays._later(row, "why")

    assert (again.attempts, again.error) == (100, "why")
    assert 290 < again.next_at - time.time() <= 300


@pytest.mark.parametrize("options", ["", "[]", "{", '{"lease": "x"}', '{"bad": 1}'])
def test_a_row_that_cannot_be_read_does_not_hold_up_others(
    disque_inline: Inline, shop: Shop, options: str
) -> None:
    shop.place(1, 2)
    with shop.engine.begin() as connection:
        table = shop.outbox.table
        connection.execute(sql.update(table).where(table.c.id == 1).values(options=options))

    assert shop.relay.step() == (1, 1)
    assert numbers(disque_inline) == [2]
    assert "cannot be read" in shop.rows()[0].error


def test_a_delay_counts_from_the_transaction(disque_inline: Inline, shop: Shop) -> None:
    shop.place(1, delay=100)
    disque_inline.sleep(40)
    shop.relay.step()
    [job] = disque_inline.jobs()
    assert job.due_in == pytest.approx(60, abs=1.1)

    shop.place(2, delay=10)
    disque_inline.sleep(40)
    shop.relay.step()
    assert min(each.due_in for each in disque_inline.jobs()) == 0


def test_a_task_with_a_unique_key_keeps_it(disque_inline: Inline, shop: Shop) -> None:
    for on_conflict in ("return", "reject", "return"):
        shop.place(1, unique="one", on_conflict=on_conflict)

    assert shop.relay.step() == (3, 0)
    assert numbers(disque_inline) == [1]
    assert shop.rows() == []


def test_jobs_that_the_user_gave_one_key_are_different_jobs(
    disque_inline: Inline, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.place(1, 2, key="order-7")
    with monkeypatch.context() as patched:
        patched.setattr(_Transaction, "delete", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            shop.relay.step()
    shop.place(3, key="order-7")

    assert shop.relay.step() == (3, 0)

    assert numbers(disque_inline) == [1, 2, 3]
    assert {job.key for job in disque_inline.jobs()} == {"order-7"}


def test_chains_and_hooks_work(disque_inline: Inline, shop: Shop) -> None:
    pay, seen = shop.app.tasks["pay"], list[Any]()
    shop.app.on(JobEnqueued)(seen.append)
    shop.app.on_enqueue(lambda adding: adding.headers.update(trace="1"))
    with shop.engine.begin() as connection:
        [key] = shop.outbox.add(connection, pay.call(1) | pay.partial())
    assert seen == []

    shop.relay.step()
    assert [(each.key, each.headers) for each in seen] == [(key, {"trace": "1"})]
    assert [each.result for each in disque_inline.blocking.run_all(shop.app)] == [1, 1]


def test_codecs_are_applied_in_the_table(disque_inline: Inline, tmp_path: Any) -> None:
    shop = opened(tmp_path, codec=Zlib(above=0), form="msgpack")

    @shop.app.task(name="print", queue="cards")
    def show(text: str) -> int:
        return len(text)

    with shop.engine.begin() as connection:
        shop.outbox.add(connection, show.call("a" * 10_000))
    assert len(shop.rows()[0].body) < 1000
    shop.relay.step()
    [ran] = disque_inline.blocking.run_all(shop.app)
    assert ran.result == 10_000
    shop.engine.dispose()


@pytest.mark.parametrize("of_chain", [False, True])
async def test_the_result_of_a_job_of_an_outbox_is_kept_by_nodes_and_sent_to_nobody(
    disque_inline: Inline, tmp_path: Any, of_chain: bool
) -> None:
    shop = opened(tmp_path, codec=Zlib(above=0))

    @shop.app.task(name="show", queue="cards", result_ttl=60)
    def show(text: str) -> str:
        return text[:2000]

    first = show.using(unique="order-1", unique_for=60).call("a" * 10_000)
    async with shop.app:
        with shop.engine.begin() as connection:
            shop.outbox.add(connection, (first | show.partial()) if of_chain else first)
        shop.relay.step()
        await disque_inline.run_all(shop.app)

        job = await show.find("order-1")
        assert job is not None
        assert await job.result(10) == "a" * 2000
        queues = (await shop.app.client.qscan()).items
        assert not [each for each in queues if each.startswith("disque-trio.reply")]
    shop.engine.dispose()


def test_what_cannot_be_added_is_refused_in_the_transaction(shop: Shop) -> None:
    with pytest.raises(NotEncodableError):
        shop.place("x")  # type: ignore[arg-type]
    with (
        pytest.raises(ValueError, match="'x' is not a call: write task"),
        shop.engine.begin() as it,
    ):
        shop.outbox.add(it, "x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="key has more than 255"):
        shop.place(1, key="k" * 256)
    with pytest.raises(TooLargeError):
        rows_of([App(max_body=10).task(name="t")(lambda: None).call()])
    assert shop.rows() == []


def test_rows_that_others_have_locked_are_skipped(disque_inline: Inline, shop: Shop) -> None:
    """SQLite has no such locks, so the words for PostgreSQL are looked at, and the order of steps
    is played with a table that has them."""
    said: list[str] = []

    class Said:
        def execute(self, query: Any) -> Any:
            said.append(str(query.compile(dialect=postgresql.dialect())))
            return self

        def mappings(self) -> list[Any]:
            return []

    _Transaction(Said(), shop.outbox.table).rows(5, 0.0, lock=True)
    assert "FOR UPDATE SKIP LOCKED" in said[0]

    database = Locking([*map(_numbered, enumerate(rows_of([_pay(shop, 1), _pay(shop, 2)])))])
    one, two = Relay(shop.app, database), Relay(shop.app, database)
    database.during = lambda: database.seen.append(two.step())
    assert one.step() == (2, 0)
    assert database.seen == [(0, 0)], "the other relay skips what the first has locked"
    assert sorted(numbers(disque_inline)) == [1, 2]


def _pay(shop: Shop, number: int) -> Any:
    return shop.app.tasks["pay"].call(number)


def _numbered(found: tuple[int, Row]) -> Row:
    return attrs.evolve(found[1], id=found[0])


@attrs.define
class Locking:
    """A table whose rows a transaction locks."""

    table: list[Row]
    locked: set[int] = attrs.Factory(set)
    seen: list[Any] = attrs.Factory(list)
    during: Any = None

    def skips_locked(self) -> bool:
        return True

    def close(self) -> None: ...

    @contextmanager
    def transaction(self) -> Iterator["Locking"]:
        mine = set(self.locked)
        yield self
        self.locked = mine

    def rows(self, limit: int, now: float, *, lock: bool) -> list[Row]:  # noqa: ARG002
        assert lock
        found = [row for row in self.table if row.id not in self.locked][:limit]
        self.locked |= {row.id for row in found}
        if found and self.during is not None:
            self.during()
        return found

    def delete(self, ids: Sequence[int]) -> None:
        self.table = [row for row in self.table if row.id not in ids]

    def failed(self, row: Row) -> None: ...


def test_a_relay_in_a_thread_adds_until_the_block_ends(disque_inline: Inline, shop: Shop) -> None:
    added = threading.Event()
    shop.app.on(JobEnqueued)(lambda _: added.set())
    with shop.relay.in_thread() as thread:
        shop.place(1)
        assert added.wait(60)
    assert not thread.is_alive()
    assert shop.rows() == []


def test_errors_of_the_database_end_no_relay(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    steps: list[int] = []

    def step() -> tuple[int, int]:
        steps.append(1)
        if len(steps) == 3:
            shop.relay.stop()
        raise DisqueError("no node") if len(steps) == 1 else OSError("no database")

    monkeypatch.setattr(Relay, "step", lambda _: step())
    monkeypatch.setattr(shop.relay._stopped, "wait", lambda _: None)
    shop.relay.run()

    assert len(steps) == 3
    assert "cannot read the outbox: no database" in caplog.text


@pytest.mark.parametrize("value", [0, -1, float("nan"), "x", 10**12])
@pytest.mark.parametrize("name", ["keep", "poll"])
def test_a_relay_without_times_is_refused(tmp_path: Any, name: str, value: Any) -> None:
    shop = opened(tmp_path)
    with pytest.raises(ValueError, match=f"{name}=.* must be a number from 0.001 to 316224000"):
        shop.outbox.relay(shop.engine, **{name: value})


def test_what_is_no_session_is_named(tmp_path: Any) -> None:
    shop = opened(tmp_path)
    with pytest.raises(ValueError, match=r"Engine.* must be a Session or a Connection"):
        shop.outbox.add(shop.engine, shop.app.tasks["pay"].call(1))
