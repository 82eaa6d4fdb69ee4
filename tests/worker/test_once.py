"""An effect in a database and the row of its job are committed together."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from disque_trio.worker import App, current_job
from disque_trio.worker.once import CREATE_TABLE, claim
from tests.worker.runs import body, outcomes, run_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "shop.db"
    database = sqlite3.connect(file)
    database.execute(CREATE_TABLE)
    database.execute("CREATE TABLE charges (amount INTEGER)")
    database.close()
    return file


def charge(path: Path, key: str, amount: int, *, dies: bool = False) -> None:
    """What a handler does, which may die before it commits."""
    database = sqlite3.connect(path)
    try:
        if claim(database, key, 1_795_348_800.5):
            database.execute("INSERT INTO charges VALUES (?)", [amount])
            if not dies:
                database.commit()
    finally:
        database.close()


def rows(path: Path, statement: str) -> list[Any]:
    database = sqlite3.connect(path)
    try:
        return database.execute(statement).fetchall()
    finally:
        database.close()


def test_a_job_that_comes_twice_has_one_effect(path: Path) -> None:
    charge(path, "k1", 10)
    charge(path, "k1", 10)

    assert rows(path, "SELECT * FROM charges") == [(10,)]


def test_the_table_may_be_made_again(path: Path) -> None:
    charge(path, "k1", 10)
    rows(path, CREATE_TABLE)
    charge(path, "k1", 10)

    assert rows(path, "SELECT * FROM charges") == [(10,)]


def test_each_job_has_its_own_effect(path: Path) -> None:
    charge(path, "k1", 10)
    charge(path, "k2", 20)

    assert rows(path, "SELECT * FROM charges") == [(10,), (20,)]


def test_a_handler_that_dies_before_the_commit_leaves_the_effect_to_the_next(path: Path) -> None:
    charge(path, "k1", 10, dies=True)
    assert rows(path, "SELECT * FROM charges") == []

    charge(path, "k1", 10)

    assert rows(path, "SELECT * FROM charges") == [(10,)]
    assert rows(path, "SELECT * FROM disque_once") == [("k1", 1_795_348_800)]


class Recorded:
    """A cursor and its connection, of a module with another style."""

    rowcount = 1

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def cursor(self) -> "Recorded":
        return self

    def execute(self, statement: str, parameters: Any, /) -> None:
        self.told.append((statement.partition("VALUES ")[2].partition(" ON")[0], parameters))

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("paramstyle", "marks", "parameters"),
    [
        ("format", "(%s, %s)", ("k1", 7)),
        ("pyformat", "(%(name)s, %(at)s)", {"name": "k1", "at": 7}),
        ("numeric", "(:1, :2)", ("k1", 7)),
    ],
)
def test_the_parameters_are_written_as_the_module_wants(
    paramstyle: str, marks: str, parameters: Any
) -> None:
    connection = Recorded()

    assert claim(connection, "k1", 7.9, paramstyle=paramstyle)

    assert connection.told == [(marks, parameters)]


def test_named_parameters_work(path: Path) -> None:
    database = sqlite3.connect(path)

    assert claim(database, "k1", 0, paramstyle="named")
    assert not claim(database, "k1", 0, paramstyle="named")
    database.close()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"paramstyle": "dollar"}, "must be one of qmark"),
        ({"table": "once; DROP TABLE charges"}, "is not the name of a table"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, str], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        claim(Recorded(), "k1", 0, **options)


def test_a_job_asks_by_its_task_and_key(path: Path) -> None:
    app, found = App(), list[bool]()

    def asks() -> None:
        database = sqlite3.connect(path)
        with database:
            found.append(current_job().once(database))
        database.close()

    app.task(name="charge", executor="loop")(asks)
    app.task(name="refund", executor="loop")(asks)
    jobs = [("charge", "k1"), ("charge", "k1"), ("refund", "k1"), ("charge", "k2")]
    outcomes(app, [run_of(body(task, key=key)) for task, key in jobs])

    assert found == [True, False, True, True]


def test_a_job_without_a_key_asks_by_its_id(path: Path) -> None:
    app, database = App(), sqlite3.connect(path)

    @app.task(name="charge", executor="loop")
    def charge() -> None:
        current_job().once(database)

    outcomes(app, [run_of(body("charge"))])

    [(name,)] = database.execute("SELECT name FROM disque_once")
    assert name.startswith("charge:D-cccccccc-")
    database.close()
