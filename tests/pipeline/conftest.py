"""One Spark for all tests: to start it takes ten seconds, and a JVM half a gigabyte."""

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


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session on `local[2]`, ended with its JVM after the last test."""
    with session.running("local[2]", app="tests", memory="1g", settings=SETTINGS) as found:
        yield found
