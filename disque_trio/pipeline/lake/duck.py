"""Answers questions on a small lake in this process, by DuckDB: Spark takes longer to start.

The views are written in Spark's SQL, as the questions are; `translation` translates both.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Final, TypeVar

import attrs
import duckdb
import pyarrow as pa

from disque_trio.pipeline.lake import asking, verdicts
from disque_trio.pipeline.lake.files import LakeError, reason
from disque_trio.pipeline.lake.shape import TABLES, VERDICTS, plain, stored
from disque_trio.pipeline.lake.store import Lake
from disque_trio.pipeline.lake.translation import MACROS, OtherSqlError, translated

Found = TypeVar("Found")
_READABLE: Final = "STORAGE_VERSION 'v1.0.0'"
"""Files of which other programs can have DuckDB 1.0, or any later one."""
_THEIRS: Final = ("Referenced column", "Table with name")
"""How errors begin that no other program would not find."""


class QuestionError(Exception):
    """A question about what is not there."""


@attrs.frozen
class Answer:
    """Rows under the names of their columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def facts(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class Duck:
    """A lake as it is now, with the views that a question names."""

    def __init__(
        self, lake: Lake, text: str, report: Callable[[str], object] = lambda _: None
    ) -> None:
        """Runs without a verdict are judged if the question needs verdicts, which is reported.
        Raises `LakeError`."""
        self._lake = lake
        self._base = duckdb.connect()
        self._base.execute("SET TimeZone = 'UTC'")
        self._base.execute(MACROS)
        parts = lake.snapshot()
        self._stored = {name: f"stored_{name}" for name in TABLES}
        """By table, what a view of its name selects from."""
        for name, view in self._stored.items():
            found = lake.dataset(name, parts[name]) if parts[name] else stored(name).empty_table()
            self._base.register(view, found)
        self._make("rows", "SELECT * FROM rows")
        self._make("traces", asking.ONE_TRACE)
        self._make("results", asking.ONE_RESULT)
        for name in asking.needed(text):
            if name == "verdicts":
                self._judge_missing(report)
            self._make(name, asking.MADE[name], "TABLE" if name in asking.JOINED else "VIEW")

    def _make(self, name: str, sql: str, kind: str = "VIEW") -> None:
        """Make a view; of its own name, it sees the table of the lake."""
        words = translated(sql, {name: self._stored[name]} if name in self._stored else {})
        self._run(f"CREATE TEMP {kind} {name} AS {words}", lambda _: None)

    def _run(self, words: str, fetch: Callable[[Any], Found]) -> Found:
        """Run SQL in a thread, and fetch what it finds. By itself DuckDB heeds Ctrl-C between its
        steps, of which one may take minutes; an interrupt ends it at once."""
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(lambda: fetch(self._base.execute(words)))
            try:
                return running.result()
            finally:
                while not running.done():
                    self._base.interrupt()
                    wait([running], 0.1)

    def ask(self, sql: str, most: int | None = None) -> Answer:
        """The rows that a question in Spark's SQL finds, all or the first ones. Raises
        `OtherSqlError` and `QuestionError`."""
        return self._answer(translated(sql), most)

    def facts(self, sql: str) -> list[dict[str, Any]]:
        """All rows as dictionaries."""
        return self.ask(sql).facts()

    def _answer(self, words: str, most: int | None = None) -> Answer:
        def fetch(found: Any) -> Answer:
            columns = [each[0] for each in found.description or ()]
            return Answer(columns, found.fetchall() if most is None else found.fetchmany(most))

        try:
            return self._run(words, fetch)
        except duckdb.Error as error:
            text = str(error)
            if any(begin in text for begin in _THEIRS):
                raise QuestionError(text.partition("\n")[0].partition(": ")[2]) from None
            raise OtherSqlError(text) from None

    def export(self, path: str, names: Sequence[str]) -> int:
        """Write views as tables of a DuckDB file, which replaces an earlier one when it is whole.
        How many rows they have. Raises `LakeError`."""
        new, rows = f"{path}.{os.getpid()}.new", 0
        try:
            self._base.execute(f"ATTACH {_quoted(new)} AS made ({_READABLE})")
            for name in names:
                made = f"CREATE TABLE made.{name} AS SELECT {self._columns(name)} FROM {name}"
                rows += self._run(made, lambda found: found.fetchall()[0][0])
            self._base.execute("DETACH made")
            os.replace(new, path)
        except (duckdb.Error, OSError) as error:
            raise LakeError(f"cannot write {path}: {reason(error)}") from None
        finally:
            with suppress(OSError):
                os.unlink(new)
        return rows

    def _columns(self, name: str) -> str:
        """The columns of a view, and its sums as BIGINT, as Spark has them: programs that do not
        know DuckDB's HUGEINT read it as text or as floating point."""
        view = self._base.sql(f"SELECT * FROM {name}")
        return ", ".join(
            f'"{column}"::BIGINT AS "{column}"' if str(kind) == "HUGEINT" else f'"{column}"'
            for column, kind in zip(view.columns, view.types, strict=True)
        )

    def close(self) -> None:
        """Free its memory."""
        self._base.close()

    def _judge_missing(self, report: Callable[[str], object]) -> None:
        """As `asking` does on Spark."""
        sql = asking.PENDING.format(judge=verdicts.judge_digest())
        pending = self._answer(translated(sql, {"verdicts": self._stored["verdicts"]})).facts()
        if not pending:
            return
        events = sum(run["events"] for run in pending)
        report(asking.judging(len(pending), events))
        found = pa.concat_tables(map(self._judged, pending))
        asking.keep(self._lake, found)
        self._base.register("judged", found)
        self._base.execute(
            f"CREATE TEMP VIEW all_verdicts AS SELECT * FROM {self._stored['verdicts']} "
            "UNION ALL BY NAME SELECT * FROM judged"
        )
        self._stored["verdicts"] = "all_verdicts"

    def _judged(self, run: dict[str, Any]) -> pa.Table:
        of_run = f"scenario = {_quoted(run['scenario'])} AND run = {_quoted(run['run'])}"
        rows = self._base.sql(f"SELECT * FROM rows WHERE {of_run} AND seed = {run['seed']}")
        found = verdicts.judge_table(rows.to_arrow_table(), run).cast(plain(VERDICTS))
        return found.append_column("scenario", [[run["scenario"]] * found.num_rows])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
