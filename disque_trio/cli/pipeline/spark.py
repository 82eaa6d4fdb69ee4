"""What commands that start Spark have in common."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from disque_trio.cli.frame import add_settings
from disque_trio.pipeline import session, shipping
from disque_trio.pipeline.errors import INSTALL, PipelineError


def add_spark(parser: argparse.ArgumentParser) -> None:
    """The options that say where Spark runs."""
    parser.add_argument(
        "--master",
        default="local[*]",
        metavar="MASTER",
        help="where Spark runs, such as spark://HOST:7077 (local[*]: here, on all processors)",
    )
    parser.add_argument(
        "--memory", default="2g", metavar="SIZE", help="the driver's memory, such as 4g (2g)"
    )
    add_settings(parser)


@contextmanager
def started(given: argparse.Namespace) -> Iterator[Any]:
    """A session as the options say. Raises `PipelineError`."""
    with shipping.running(
        given.master, app="disque-trio", memory=given.memory, settings=dict(given.spark_settings)
    ) as spark:
        try:
            yield spark
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark", "py4j")):
                raise
            raise PipelineError(session.why(error, "Spark cannot do it")) from None


def part(name: str) -> Any:
    """A module of the pipeline that needs pyarrow: a command line should start without it, if only
    to say how to get it. Raises `PipelineError`."""
    try:
        return import_module(f"disque_trio.pipeline.{name}")
    except ModuleNotFoundError as error:
        raise PipelineError(f"this needs Spark ({error}): {INSTALL}") from None
