"""What commands that start Spark have in common."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import attrs

from disque_trio.cli.frame import spark_settings
from disque_trio.pipeline import session, shipping
from disque_trio.pipeline.errors import INSTALL, PipelineError
from disque_trio.terminal.options import DIR, argument, option, text
from disque_trio.terminal.output import complain


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
        "--master", text("MASTER"), "where Spark runs, such as spark://HOST:7077", "local[*]",
        shown="local[*]: here, on all processors",
    )  # fmt: skip
    memory: str = option("--memory", text("SIZE"), "the driver's memory, such as 4g", "2g")
    spark_settings: tuple[tuple[str, str], ...] = spark_settings()


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
            raise PipelineError(session.why(error, "Spark cannot do it")) from None


def tell_of_judging(line: str) -> None:
    """Say which runs are judged before a question is answered."""
    complain(f"disque-trio pipeline: {line}")


def part(name: str) -> Any:
    """A module of the pipeline that needs pyarrow: a command line should start without it, if only
    to say how to get it. Raises `PipelineError`."""
    try:
        return import_module(f"disque_trio.pipeline.{name}")
    except ModuleNotFoundError as error:
        raise PipelineError(f"this needs Spark ({error}): {INSTALL}") from None
