"""Errors that a user of Spark reads: a sentence instead of a page of Python.

PySpark reports an error of one of its Python processes with the traceback, unless the environment
of the process says otherwise. The process ends with the error, so that this concerns no other one.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, NoReturn, ParamSpec, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from disque_trio.pipeline.errors import PipelineError

_HIDES: Final = "SPARK_HIDE_TRACEBACK"
Given = ParamSpec("Given")
Result = TypeVar("Result")


@contextmanager
def sentences() -> Iterator[None]:
    """Errors of the pipeline leave this process without a traceback if it is one of Spark's."""
    try:
        yield
    except PipelineError:
        if _is_sparks():
            os.environ[_HIDES] = "1"
        raise


def in_a_sentence(method: Callable[Given, Result]) -> Callable[Given, Result]:
    """The same for a method that Spark calls."""

    @wraps(method)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        with sentences():
            return method(*args, **kwargs)

    return called


def _is_sparks() -> bool:
    """Does this process work for Spark alone?"""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")


class Refused(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A source that cannot be. If `streamReader` itself fails, PySpark reports an UnboundLocalError
    of its own."""

    def __init__(self, error: PipelineError) -> None:
        self._error = error

    @in_a_sentence
    def _refuse(self, *_: Any) -> NoReturn:
        raise self._error

    initialOffset = latestOffset = _refuse  # noqa: N815
    getDefaultReadLimit = prepareForTriggerAvailableNow = _refuse  # noqa: N815
    partitions = read = commit = _refuse
