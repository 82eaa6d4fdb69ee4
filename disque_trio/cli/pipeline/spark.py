"""What commands that start Spark have in common."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import attrs

from disque_trio.cli.frame import spark_settings
from disque_trio.pipeline import session, shipping
from disque_trio.pipeline.errors import INSTALL, PipelineError
from disque_trio.terminal.options import DIR, argument, one_of, option, text
from disque_trio.terminal.output import complain

HERE: Final = "local[*]"
_SMALL: Final = 10_000_000
"""Rows of a lake up to which DuckDB answers sooner than Spark on this machine."""


@attrs.frozen(kw_only=True)
class LakeOptions:
    """What each command about a lake has."""

    lake: str = argument(DIR, "the lake")

    @property
    def subject(self) -> str:
        """The lake."""
        return self.lake


@attrs.frozen(kw_only=True)
class SparkOptions(LakeOptions):
    """Where Spark runs."""

    master: str = option(
        "--master", text("MASTER"), "master of Spark, such as spark://HOST:7077", HERE,
        shown="local[*]: this machine, on all processors",
    )  # fmt: skip
    memory: str = option("--memory", text("SIZE"), "memory of the driver, such as 4g", "2g")
    spark_settings: tuple[tuple[str, str], ...] = spark_settings()


@attrs.frozen(kw_only=True)
class AskOptions(SparkOptions):
    """What answers."""

    engine: str = option(
        "--engine", one_of("auto", "duckdb", "spark"),
        "engine for queries: DuckDB in this process, or Spark", "auto",
        shown="auto: DuckDB for a lake of up to ten million rows, unless --master is given",
    )  # fmt: skip


def is_for_duckdb(options: AskOptions, lake: Any) -> bool:
    """Does DuckDB answer? Raises `PipelineError` if it should and is not installed."""
    if options.engine == "spark" or (options.engine == "auto" and options.master != HERE):
        return False
    if not all(find_spec(name) for name in ("duckdb", "sqlglot")):
        if options.engine == "auto":
            return False
        raise PipelineError(f"--engine duckdb needs DuckDB and sqlglot: {INSTALL}")
    return options.engine == "duckdb" or sum(each.rows for each in lake.parts("rows")) <= _SMALL


@contextmanager
def started(options: SparkOptions) -> Iterator[Any]:
    """A session as the options say. Raises `PipelineError`."""
    with shipping.running(
        options.master,
        app="disque-trio",
        memory=options.memory,
        settings=dict(options.spark_settings),
    ) as spark:
        try:
            yield spark
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark", "py4j")):
                raise
            raise PipelineError(session.why(error, "Spark failed")) from None


def announce_judging(line: str) -> None:
    """Say which runs are judged before a question is answered."""
    complain(f"disque-trio pipeline: {line}")


def part(name: str) -> Any:
    """A module of the pipeline that needs pyarrow: a command line should start without it, if only
    to say how to get it. Raises `PipelineError`."""
    try:
        return import_module(f"disque_trio.pipeline.{name}")
    except ModuleNotFoundError as error:
        raise PipelineError(f"Spark is missing ({error}): {INSTALL}") from None
