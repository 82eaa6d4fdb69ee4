"""`disque-trio pipeline query`: ask a lake, by the name of a view or in SQL."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final

import attrs
from rich.console import Console
from rich.table import Table

from disque_trio.cli.frame import json_switch
from disque_trio.cli.pipeline.spark import (
    AskOptions,
    announce_judging,
    is_for_duckdb,
    part,
    started,
)
from disque_trio.pipeline.lake.views import VIEWS, lines
from disque_trio.pipeline.session import first_line
from disque_trio.terminal.consoles import console
from disque_trio.terminal.options import COUNT, UsageError, argument, option, switch, text
from disque_trio.terminal.output import say, say_facts, say_json

HELP = "Query a lake: by the name of a view, or in SQL."
_UNBOUNDED: Final = 1_000_000
"""Columns of a terminal without an edge."""
_NAME: Final = re.compile(r"\w+")


@attrs.frozen(kw_only=True)
class Options(AskOptions):
    """`pipeline query`."""

    query: str | None = argument(
        text("VIEW|SQL"),
        "the name of a view, or a query over views in Spark's SQL (list the views)",
        "?",
    )
    columns: bool = switch("--columns", "describe the columns of the view, and exit")
    most: int = option("--most", COUNT, "maximum number of rows", 20, shown="20; with --json all")
    is_json: bool = json_switch()


def run(options: Options) -> int:
    """Ask, and show."""
    lake = part("lake.store").Lake.open(options.lake)
    if options.query is None:
        _list(lines())
        return 0
    if options.columns:
        _list(_columns(options.query))
        return 0
    query = _query(options.query)  # a wrong name is told before Spark has started
    if is_for_duckdb(options, lake) and _answered_here(options, lake, query):
        return 0
    with started(options) as spark:
        found = _ask(spark, lake, query)
        kinds = [field.dataType.typeName() for field in found.schema]
        if options.is_json:
            for row in found.toLocalIterator():
                say_json(dict(zip(found.columns, _values(row, kinds), strict=True)))
        else:
            rows = found.limit(options.most + 1).collect()
            _show(found.columns, [_values(row, kinds) for row in rows], options.most)
    return 0


def _values(row: Iterable[Any], kinds: Sequence[str]) -> list[Any]:
    """The values of a row. A time without a zone stays one."""
    return [
        value if kind == "timestamp_ntz" else _plain(value)
        for value, kind in zip(row, kinds, strict=True)
    ]


def _plain(value: Any) -> Any:
    """A value of Spark as DuckDB has it. PySpark gives times in the zone of this process, and does
    not name the zone."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return list(map(_plain, value)) if isinstance(value, list) else value


def _columns(name: str) -> Mapping[str, str]:
    if name in VIEWS:
        return VIEWS[name].columns
    raise UsageError(f"there is no view {name}; without one, 'query LAKE' lists them")


def _query(text: str) -> str:
    return f"SELECT * FROM {view_named(text)}" if _NAME.fullmatch(text) else text


def view_named(text: str) -> str:
    """The name of a view or table, as the lake has it. Raises `UsageError`."""
    if text.lower() in lines():
        return text.lower()
    near = "".join(f", did you mean {name}?" for name in get_close_matches(text, lines(), 1))
    raise UsageError(f"there is no view {text}{near or ';'} 'query LAKE' lists them")


def _answered_here(options: Options, lake: Any, query: str) -> bool:
    """Ask DuckDB, and show. False if it does not understand the query and Spark may."""
    duck = part("lake.duck")
    try:
        with closing(duck.Duck(lake, query, announce_judging)) as found:
            answer = found.ask(query, None if options.is_json else options.most + 1)
    except duck.QuestionError as error:
        raise UsageError(str(error)) from None
    except duck.OtherSqlError as error:
        if options.engine == "auto":
            return False
        raise UsageError(f"DuckDB cannot run the query: {first_line(error)}") from None
    if options.is_json:
        for facts in answer.facts():
            say_json(facts)
    else:
        _show(answer.columns, answer.rows, options.most)
    return True


def _ask(spark: Any, lake: Any, query: str) -> Any:
    part("lake.asking").attach(spark, lake, query, announce_judging)
    try:
        return spark.sql(query)
    except Exception as error:  # whatever Spark says of a query
        raise UsageError(f"Spark cannot run the query: {first_line(error)}") from None


def _list(descriptions: Mapping[str, str]) -> None:
    width = max(len(name) for name in descriptions)
    for name, line in descriptions.items():
        say(f"{name:{width}}  {line}")


def _show(columns: Sequence[str], rows: Sequence[Any], most: int) -> None:
    is_terminal = sys.stdout.isatty()
    shown = console(width=None if is_terminal else 200)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for at, name in enumerate(columns):
        is_number = all(isinstance(row[at], int | float | None) for row in rows)
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in rows[:most]:
        table.add_row(*(_text(value) for value in row))
    if _fits(shown, table):
        shown.print(table)
    else:
        _show_each(columns, rows[:most])
    if len(rows) > most:
        shown.print("… and more: --most shows them, --json all")


def _fits(shown: Console, table: Table) -> bool:
    """Is there room for the longest word of each column?"""
    options = shown.options.update(max_width=_UNBOUNDED)
    return shown.measure(table, options=options).minimum <= shown.width


def _show_each(columns: Sequence[str], rows: Sequence[Any]) -> None:
    """A line for each column of a row."""
    for number, row in enumerate(rows, 1):
        say(f"row {number}")
        say_facts((f"  {name}", _text(value)) for name, value in zip(columns, row, strict=True))


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.3f}"
    return str(value)
