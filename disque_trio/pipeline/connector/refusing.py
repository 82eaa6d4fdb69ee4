"""Errors that a user of Spark reads: a sentence instead of a page of Python.

PySpark reports an error of one of its Python processes with the traceback, unless the environment
of the process says otherwise. The process ends with the error, so that this concerns no other one.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from disque_trio.pipeline.errors import PipelineError

_HIDES: Final = "SPARK_HIDE_TRACEBACK"


@contextmanager
def sentences() -> Iterator[None]:
    """Errors of the pipeline leave this process without a traceback if it is one of Spark's.

    It decorates the methods that Spark calls.
    """
    try:
        yield
    except PipelineError:
        if _is_sparks():
            os.environ[_HIDES] = "1"
        raise


def _is_sparks() -> bool:
    """Does this process work for Spark alone?"""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")


class Refused(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A source that cannot be. If `streamReader` itself fails, PySpark reports an UnboundLocalError
    of its own."""

    def __init__(self, error: PipelineError) -> None:
        self._error = error

    @sentences()
    def _refuse(self, *_: Any) -> NoReturn:
        raise self._error

    initialOffset = latestOffset = _refuse  # noqa: N815
    getDefaultReadLimit = prepareForTriggerAvailableNow = _refuse  # noqa: N815
    partitions = read = commit = _refuse
