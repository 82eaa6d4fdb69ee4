"""One Spark for all tests: to start it takes ten seconds, and a JVM half a gigabyte."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from disque_trio.pipeline import session

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # To compile queries and then their code costs more than a few thousand rows do.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}

ROOM = Path(__file__).parent

if not session.is_installed():
    raise pytest.UsageError("tests/pipeline needs Spark: make .venv/.spark")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark takes its time where others want the processors, too."""
    for item in items:
        if ROOM in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(600))


STORE = "http://127.73.1.1:5009"
"""Where the object store of the tests is, while there is one: at an address of its own, at which
its port is free."""
IN_STORE = {
    "AWS_ENDPOINT_URL": STORE,
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Spark's Python processes have the environment with which the session began."""


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session on `local[2]`, ended with its JVM after the last test."""
    os.environ.update(IN_STORE)
    with session.running("local[2]", app="tests", memory="1g", settings=SETTINGS) as found:
        yield found
