"""The example shop: what its tasks do, also when workers and nodes fail."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from disque_trio.testing.inline.kit import Inline
from disque_trio.testing.simulated.cluster import Cluster
from disque_trio.testing.simulated.kit import Sim
from examples.shop import run
from examples.shop.tasks import app, charge, connect, invoice, mail, place, ship

TABLES = ("charges", "invoices", "mails")


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    monkeypatch.setenv("SHOP_DATABASE", str(tmp_path / "shop.db"))
    with closing(connect()) as database:
        database.execute("PRAGMA synchronous = OFF")
        yield database


def rows(database: sqlite3.Connection) -> list[list[int]]:
    """The orders in each table."""
    return [
        [number for (number,) in database.execute(f"SELECT number FROM {table} ORDER BY number")]
        for table in TABLES
    ]


def empty(database: sqlite3.Connection) -> None:
    with database:
        for table in ("disque_once", "parcels", *TABLES):
            database.execute(f"DELETE FROM {table}")


async def test_an_order_is_charged_then_invoiced_then_mailed(
    disque_inline: Inline, database: sqlite3.Connection
) -> None:
    async with app:
        await place(1, 500)
    disque_inline.assert_enqueued(charge, args=(1, 500))

    ran = await disque_inline.run_all(app)

    assert [each.task for each in ran] == [charge.name, invoice.name, mail.name]
    assert rows(database) == [[1], [1], [1]]


async def test_the_api_takes_orders(disque_inline: Inline) -> None:
    pytest.importorskip("fastapi")
    from examples.shop import api  # noqa: PLC0415

    async with api.api.router.lifespan_context(api.api):
        answer = await api.order(7, cents=700)

    [job] = disque_inline.jobs(charge)
    assert answer == {"job": job.id}
    assert "/orders/{number}" in api.api.openapi()["paths"]


async def test_the_api_reads_what_has_become_of_an_order(disque_inline: Inline) -> None:
    pytest.importorskip("fastapi")
    from examples.shop import api  # noqa: PLC0415

    async with app:
        good, bad = await place(1, 500), await place(2, 0)
        assert await api.look(good) == {"state": "open"}
        await disque_inline.run_all(app, may_die=True)

        assert await api.look(good) == {
            "state": "done",
            "result": "order 1 is paid, and its customer knows",
        }
        assert (await api.look(bad))["state"] == "failed"


async def test_the_api_ships_parcels_and_knows_how_far_they_are(
    disque_inline: Inline, database: sqlite3.Connection
) -> None:
    pytest.importorskip("fastapi")
    from examples.shop import api  # noqa: PLC0415

    async with app:
        sent = await api.send(1)
        assert await api.track(sent["flow"]) == {"state": "running"}
        await disque_inline.run_all(app)

        assert await api.track(sent["flow"]) == {"state": "over"}
        assert len(database.execute("SELECT * FROM parcels").fetchall()) == 3


@pytest.mark.parametrize("path", ["/orders/jobs/D-1/2-3", "/parcels/flows/D-1/2-3"])
def test_the_api_takes_ids_with_slashes(path: str) -> None:
    pytest.importorskip("fastapi")
    from starlette.routing import Match  # noqa: PLC0415

    from examples.shop import api  # noqa: PLC0415

    scope = {"type": "http", "method": "GET", "path": path, "root_path": ""}
    assert any(each.matches(scope)[0] is Match.FULL for each in api.api.routes)


async def test_each_customer_is_a_group(disque_inline: Inline) -> None:
    async with app:
        await place(1, 500, "acme")
        await place(2, 500)

    assert [each.group for each in disque_inline.jobs(charge)] == ["acme", "guest"]


async def test_an_order_that_is_placed_twice_is_charged_once(
    disque_inline: Inline, database: sqlite3.Connection
) -> None:
    async with app:
        await place(1, 500)
        await place(1, 500)

    await disque_inline.run_all(app)

    assert rows(database)[0] == [1]


async def test_a_mail_that_fails_is_tried_again(
    disque_inline: Inline, database: sqlite3.Connection
) -> None:
    async with app:
        await place(3, 500)

    ran = await disque_inline.run_all(app)

    assert [each.end for each in ran] == ["done", "done", "retried", "done"]
    assert rows(database)[2] == [3]


async def test_an_order_that_costs_nothing_is_a_dead_letter(
    disque_inline: Inline, database: sqlite3.Connection
) -> None:
    async with app:
        await place(1, 0)

    [ran] = await disque_inline.run_all(app, may_die=True)

    assert ran.end == "dead"
    assert len(disque_inline.dead()) == 1
    assert rows(database) == [[], [], []]


async def test_each_hour_has_one_report(
    disque_inline: Inline, database: sqlite3.Connection
) -> None:
    await disque_inline.run_for(app, timedelta(hours=3).total_seconds())

    assert len(database.execute("SELECT * FROM reports").fetchall()) == 3


def test_nobody_is_charged_twice_and_every_order_ends(
    disque_sim: Sim, database: sqlite3.Connection
) -> None:
    async def story(cluster: Cluster) -> None:
        empty(database)
        for number in range(1, 5):
            await place(number, 500)
        await cluster.sleep(0.7)  # the workers have charged, and do not know it yet
        with cluster.crash("w1"), cluster.partition(["n1"], ["n2", "n3"]):
            await cluster.sleep(20)
        with cluster.crash("n3"):
            await cluster.sleep(20)
        await cluster.drained()
        assert cluster.dead() == []
        assert rows(database) == [[1, 2, 3, 4]] * 3

    disque_sim.run(story, app, state={}, seeds=3)


def test_a_parcel_is_handed_over_last_and_mails_are_limited_in_the_whole_cluster(
    disque_sim: Sim, database: sqlite3.Connection
) -> None:
    async def story(cluster: Cluster) -> None:
        empty(database)
        found = await app.find_flow((await ship(1)).id)  # as another process does
        assert found is not None
        with cluster.crash("w1"):
            await cluster.sleep(20)
        assert (await found.wait(timeout=60)).counts == {"done": 3}
        steps = [step for (step,) in database.execute("SELECT step FROM parcels WHERE number = 1")]
        assert sorted(steps[:2]) == ["labelled", "packed"]
        assert steps[2:] == ["handed over"]

        id = await place(1, 500)
        await cluster.drained()
        assert await app.result(id, timeout=60) == "order 1 is paid, and its customer knows"
        told = await app.admin.queues.limits("mail")
        known = [str(info.limits) for _, info in told.items if info is not None]
        assert known == ["4 leased"] * 3

    disque_sim.run(story, app, state={}, seeds=3)


@pytest.mark.slow
def test_a_charge_does_no_harm_at_any_step(disque_sim: Sim, database: sqlite3.Connection) -> None:
    def charges() -> list[int]:
        found = rows(database)[0]
        empty(database)  # the next try begins without any
        return found

    disque_sim.idempotent(charge.call(1, 500), app, state={}, snapshot=charges)


# What `make example` says.


def test_the_run_is_good_only_if_each_order_is_charged_once_and_mailed(
    database: sqlite3.Connection,
) -> None:
    orders = [(number,) for number in range(1, run.ORDERS + 1)]
    database.executemany("INSERT INTO charges VALUES (?, 100)", orders)
    assert not run.show(database, Counter())

    database.executemany("INSERT INTO mails VALUES (?)", orders)
    assert run.show(database, Counter())

    database.execute("INSERT INTO charges VALUES (1, 100)")
    assert not run.show(database, Counter())


def test_the_run_counts_how_often_each_order_began_to_be_charged(tmp_path: Path) -> None:
    (tmp_path / "worker-1.log").write_text("INFO shop.charge: charges order 1\n")
    (tmp_path / "worker-2.log").write_text("charges order 1\ncharges order 12\n")

    assert run.begun(tmp_path) == {1: 2, 12: 1}
