"""The outbox in Django: rows of a transaction, the relay's command, and tasks of Django."""

from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest

from disque_trio.testing.inline.kit import Inline

pytest.importorskip("django")
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from disque_trio.contrib.django import api
from disque_trio.contrib.outbox import django as outbox
from disque_trio.worker import App
from tests.contrib.djangosettings import worker

app = App()
seen: list[Any] = []


@app.task(name="pay", queue="cards")
def pay(number: int) -> int:
    return number


@api.home.task(backend="outbox")
def greet(name: str) -> None:
    seen.append(name)


@api.home.task(backend="kept-outbox")
def double(number: int) -> int:
    return 2 * number


@pytest.fixture(autouse=True)
def table() -> Iterator[Any]:
    call_command("migrate", verbosity=0)
    from disque_trio.contrib.outbox.django.models import OutboxRow  # noqa: PLC0415

    yield OutboxRow.objects
    OutboxRow.objects.all().delete()
    seen.clear()


def test_a_job_of_a_committed_transaction_is_added(disque_inline: Inline, table: Any) -> None:
    with transaction.atomic():
        [key] = outbox.add(pay.call(7))
    assert str(table.get()) == f"pay {key}"

    assert outbox.relay(app).step() == (1, 0)

    [ran] = disque_inline.blocking.run_all(app)
    assert (ran.result, ran.key) == (7, key)
    assert table.count() == 0


def test_a_job_of_a_transaction_that_is_rolled_back_is_none(table: Any) -> None:
    def fails() -> None:
        with transaction.atomic():
            outbox.add(pay.call(7))
            raise RuntimeError("rolled back")

    with pytest.raises(RuntimeError, match="rolled back"):
        fails()
    assert table.count() == 0


def test_what_no_node_accepts_stays(disque_inline: Inline, table: Any) -> None:
    full = pay.using(maxlen=1)
    outbox.add(full.call(1), full.call(2))

    assert outbox.relay(app).step() == (1, 1)
    row = table.get()
    assert row.attempts == 1
    assert row.error
    assert row.next_at > disque_inline.now


@pytest.mark.parametrize("dot", [":", "."])
def test_a_task_of_django_is_a_row_of_the_transaction(
    disque_inline: Inline, table: Any, dot: str
) -> None:
    with transaction.atomic():
        result = greet.enqueue("ada")
        assert disque_inline.jobs() == []
    assert table.get().key == result.id

    out = StringIO()
    name = f"disque_trio.contrib.django.worker{dot}outbox"
    call_command("disque_outbox", "--once", "--app", name, stdout=out)

    assert out.getvalue() == "1 job added\n"
    disque_inline.blocking.run_all(worker.outbox)
    assert seen == ["ada"]


@pytest.mark.parametrize("name", ["nothing.at_all", "nothing:at_all", "os.path", "os:path"])
def test_the_command_needs_an_app(name: str) -> None:
    with pytest.raises(CommandError, match="--app"):
        call_command("disque_outbox", "--app", name)


def test_the_migrations_are_those_of_the_model() -> None:
    call_command("makemigrations", "disque_outbox", check=True, dry_run=True, verbosity=0)
    assert "disque_outbox" in connection.introspection.table_names()


def test_the_result_of_a_task_of_an_outbox_is_found_by_its_key(
    disque_inline: Inline, table: Any
) -> None:
    added = double.enqueue(21)
    assert table.count() == 1
    with pytest.raises(api.exceptions.TaskResultDoesNotExist):
        double.get_result(added.id)

    backend = worker.__getattr__("kept-outbox")
    outbox.relay(backend).step()
    assert double.get_result(added.id).args == [21]
    disque_inline.blocking.run_all(backend)

    assert double.get_result(added.id).return_value == 42
