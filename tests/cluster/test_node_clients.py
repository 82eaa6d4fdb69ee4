"""ioredis and node-redis, unmodified, in both versions of the protocol.

One script for each client does everything once; each test looks at what came of one part of it.
"""

import json
from typing import Any

import pytest

from tests.cluster import nodejs
from tests.cluster.lossy import lossy
from tests.cluster.processes import Server

pytestmark = pytest.mark.skipif(not nodejs.IS_THERE, reason="node and npm are not installed")

Results = dict[str, Any]
"""What the script says, by the name of the step; an error is an object with its text."""
NO_MULTI = "there are no transactions here, and nothing up to EXEC is executed"


@pytest.fixture(
    scope="module",
    params=[(script, version) for script in ("ioredis", "node-redis") for version in (2, 3)],
    ids=lambda param: f"{param[0]}, version {param[1]}",
)
def results(request: pytest.FixtureRequest, server: Server) -> Results:
    script, version = request.param
    with lossy(server.port) as port:
        found: Results = json.loads(nodejs.run(f"{script}.js", server.port, port, version))
    return found | {"script": script, "version": version}


@pytest.mark.sample(2)
def test_the_client_connects_and_is_known_by_its_name(results: Results) -> None:
    assert results["ping"] == "PONG"
    assert results["echo"] == "grüße"
    assert results["name"] == f"from-{results['script']}"
    assert results.get("library", "node-redis") == "node-redis"
    assert results["commands"] >= 35


def test_a_job_goes_round(results: Results) -> None:
    queue = f"{results['script']}-{results['version']}"

    assert results["round"] == [queue, True, "body", 1]
    assert results["nothing"] is None


def test_a_worker_waits_for_a_job(results: Results) -> None:
    assert results["waits"] is True


def test_nothing_of_a_transaction_is_executed(results: Results) -> None:
    text = results["multi"]["error"]

    assert NO_MULTI in text or text.startswith("EXECABORT ")
    assert results["afterMulti"] == 0


def test_a_plain_pipeline_is_executed(results: Results) -> None:
    is_ioredis = results["script"] == "ioredis"  # which tells an error with each reply

    assert results["pipeline"] == ([[None, 0], [None, "PONG"]] if is_ioredis else [0, "PONG"])


def test_there_are_no_channels_and_the_client_gets_an_error(results: Results) -> None:
    assert "there are no channels here" in results["subscribe"]["error"]


def test_a_producer_whose_answer_is_lost_adds_one_job_and_is_told(results: Results) -> None:
    told, jobs = results["lost"]

    assert jobs == 1
    assert "error" in told


def test_another_database_is_an_error_when_the_client_connects(results: Results) -> None:
    assert "there is database 0 alone, not '5'" in results["wrongDatabase"]
