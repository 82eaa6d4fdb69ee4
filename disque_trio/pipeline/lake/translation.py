"""Translates Spark's SQL for DuckDB.

sqlglot does it, but for what means something else in Spark 4 or in DuckDB than sqlglot assumes: it
would be answered with other rows, and without an error.
"""

from collections.abc import Mapping
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark

_OTHERS: Final = {
    "collations", "date_part", "datepart", "hash", "user", "version", "weekday"
}  # fmt: skip
"""Functions of Spark that DuckDB has, too, with other results."""
_OTHER_KINDS: Final = (exp.DayOfWeek, exp.Extract, exp.Typeof)
"""The same, as sqlglot knows them."""
MACROS: Final = """
CREATE TEMP MACRO timestamp_micros(x) AS make_timestamp(x)::TIMESTAMPTZ;
CREATE TEMP MACRO cut(x) AS CASE WHEN regexp_matches(typeof(x), '^(DOUBLE|FLOAT|DECIMAL)')
  THEN TRY_CAST(trunc(TRY_CAST(x AS DOUBLE)) AS BIGINT) WHEN typeof(x) LIKE 'TIMESTAMP%'
  THEN epoch_us(TRY_CAST(x AS TIMESTAMP)) // 1000000 ELSE TRY_CAST(x AS BIGINT) END;
"""
"""Functions for DuckDB. `cut` makes whole numbers as Spark does: DuckDB's casts round, and know no
seconds of a timestamp."""


class OtherSqlError(Exception):
    """SQL that Spark may understand, and DuckDB does not."""


class _Spark(Spark):
    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = (*Spark.Tokenizer.STRING_ESCAPES, "'")
        """Since Spark 4, `'it''s'` has a quote."""


def translated(sql: str, names: Mapping[str, str] | None = None) -> str:
    """SQL of Spark as DuckDB understands it, with other names of tables. Raises `OtherSqlError`."""
    try:
        trees = sqlglot.parse(sql, read=_Spark)
        if len(trees) != 1 or trees[0] is None:
            raise OtherSqlError("it is not a single question")
        tree: Any = trees[0]
        if isinstance(tree, exp.Select):  # DuckDB names `max(seconds)` otherwise
            tree.set("expressions", list(map(_named, tree.expressions)))
        for node in reversed(list(tree.walk())):  # what is in a node precedes it
            new = _changed(node, names or {})
            tree = new if node is tree else tree
            if new is not node and node.parent is not None:
                node.replace(new)
        return str(tree.sql(dialect="duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE))
    except (sqlglot.errors.SqlglotError, ValueError) as error:
        raise OtherSqlError(str(error)) from None


def _changed(node: Any, names: Mapping[str, str]) -> Any:
    if isinstance(node, _OTHER_KINDS) or _is_other(node):
        raise OtherSqlError(f"DuckDB's {node.sql('spark')} has other results")
    if isinstance(node, exp.ApproxQuantile):  # there are few values: exactly
        return _call("quantile_disc", node.this, node.args["quantile"])
    if isinstance(node, exp.CountIf):  # DuckDB's is null without rows
        return exp.Count(this=exp.Case().when(node.this, "1"))
    if isinstance(node, exp.Cast) and node.to.is_type(*exp.DataType.INTEGER_TYPES):
        node.set("this", _call("cut", node.this))
    if isinstance(node, exp.Like | exp.ILike) and not isinstance(node.parent, exp.Escape):
        return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
    if isinstance(node, exp.Table) and node.name in names:
        node.set("this", exp.to_identifier(names[node.name]))
    return node


def _is_other(node: Any) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in _OTHERS


def _call(name: str, *arguments: Any) -> Any:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _named(column: Any) -> Any:
    """What has no name under the name that Spark gives it."""
    if not isinstance(column, exp.Func | exp.Binary) or isinstance(
        column, exp.ApproxQuantile | exp.Anonymous | exp.UDTF | exp.Dot
    ):
        return column
    if isinstance(column, exp.Cast) and isinstance(column.this, exp.Column):
        return exp.alias_(column, column.this.name, quoted=True)
    shown = column.copy()
    for paren in list(shown.find_all(exp.Paren)):
        paren.replace(paren.this)
    for part in reversed(list(shown.find_all(exp.Binary))):
        if part.parent is not None and not isinstance(part, exp.Dot):
            part.replace(exp.paren(part.copy(), copy=False))
    text = (exp.paren(shown) if isinstance(shown, exp.Binary) else shown).sql(
        "spark", normalize_functions="lower"
    )
    return exp.alias_(column, text.replace("(*)", "(1)"), quoted=True)
