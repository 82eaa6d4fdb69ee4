"""What Spark tells of mistakes: our sentence in the first lines, and no page of Python."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from pyspark.errors import PySparkException

from tests.cluster.processes import Cluster, Fleet, free_port
from tests.pipeline.connector.desk import name_of


@attrs.define
class User:
    """Who makes them."""

    spark: Any
    nodes: str
    locked: str
    """A node with a password."""
    folder: Path

    def table(self, **options: object) -> Any:
        """A queue as a table."""
        reader = self.spark.read.format("disque").options(nodes=self.nodes, timeout=20)
        return reader.options(**options)

    def stream(self, **options: object) -> Any:
        """A queue as a stream."""
        reader = self.spark.readStream.format("disque").options(nodes=self.nodes, timeout=20)
        return reader.options(**{"queue": "mistakes", **options})

    def write(self, rows: str, **options: object) -> None:
        """The rows of a query into a queue."""
        writer = self.spark.sql(rows).write.format("disque").mode("append")
        writer.options(**{"nodes": self.nodes, "queue": "mistakes", **options}).save()

    def insert(self, how: str) -> None:
        """A row in SQL."""
        options = f"OPTIONS (nodes '{self.nodes}', queue 'mistakes')"
        self.spark.sql(f"CREATE OR REPLACE TEMP VIEW filled (body STRING) USING disque {options}")
        self.spark.sql(f"INSERT {how} filled VALUES ('a')")

    def run(self, frame: Any, mode: str = "append", sink: str = "noop") -> None:
        """A stream to its end."""
        writer = frame.writeStream.format(sink).outputMode(mode)
        writer = writer.options(nodes=self.nodes, queue="out") if sink == "disque" else writer
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()


def counted(user: User) -> Any:
    """A stream whose rows change."""
    return user.stream().load().groupBy("body").count().select("body")


NOBODY = f"127.0.0.1:{free_port()}"
MISTAKES: dict[str, tuple[Callable[[User], object], str]] = {
    "the name of an option": (
        lambda user: user.stream(maxJobs=5).load(),
        "there is no option 'maxjobs'; did you mean maxJobsPerTrigger?",
    ),
    "the name that Kafka has": (
        lambda user: user.stream(**{"kafka.bootstrap.servers": "a:9092"}).load(),
        "there is no option 'kafka.bootstrap.servers'; did you mean nodes?",
    ),
    "where Kafka's stream begins": (
        lambda user: user.stream(startingOffsets="newest").load(),
        "there is no option 'startingoffsets': a stream begins with the enqueued jobs",
    ),
    "a value": (
        lambda user: user.stream(failOnDataLoss="no").load(),
        "option failOnDataLoss: 'no': must be true or false",
    ),
    "batches of nothing": (
        lambda user: user.stream(maxJobsPerTrigger=0).load(),
        "option maxJobsPerTrigger: '0': must be a whole number from 1 to 1000000",
    ),
    "a node without its port": (
        lambda user: user.table(nodes="myhost").load(),
        "option nodes: 'myhost' is not host:port, such as 127.0.0.1:7711",
    ),
    "INSERT OVERWRITE": (
        lambda user: user.insert("OVERWRITE"),
        "a queue cannot be overwritten",
    ),
    "a path": (
        lambda user: user.table().load("orders"),
        "load() and save() have no path here: set the queue",
    ),
    "a table of the catalog": (
        lambda user: user.spark.sql(f"CREATE TABLE c USING disque OPTIONS (nodes '{user.nodes}')"),
        "passes the options of tables in its catalog to no source in Python: use CREATE TEMPORARY",
    ),
    "a stream of no queue": (
        lambda user: user.run(user.stream(queue="").load()),
        "option queue is missing: it names the queue to read",
    ),
    "a stream of a state": (
        lambda user: user.run(user.stream(state="queued").load()),
        "option state is only for a table that is read, not a stream that is read",
    ),
    "a state": (
        lambda user: user.table(state="ready").load(),
        "option state: 'ready': 'ready' is not one of wait-repl, active, queued",
    ),
    "a port where nobody listens": (
        lambda user: user.table(nodes=NOBODY).load().collect(),
        f"no node answers ({NOBODY}): Could not connect to Disque at {NOBODY}: Connection refused",
    ),
    "a port where nobody listens, by a stream": (
        lambda user: user.run(user.stream(nodes=NOBODY).load()),
        f"no node answers ({NOBODY})",
    ),
    "the name of a machine": (
        lambda user: user.table(nodes="no-such-host.invalid:7711").load().collect(),
        "no node answers (no-such-host.invalid:7711)",
    ),
    "no password": (
        lambda user: user.table(nodes=user.locked).load().collect(),
        "requires a password",
    ),
    "the password": (
        lambda user: user.table(nodes=user.locked, password="no").load().collect(),
        "refuses the password",
    ),
    "a file with the password": (
        lambda user: user.table(nodes=user.locked, passwordFile="/none").load().collect(),
        "option passwordFile: cannot read '/none': No such file or directory",
    ),
    "a column that jobs do not have": (
        lambda user: user.table().schema("id string").load().collect(),
        "jobs have no column id; they have job_id, queue",
    ),
    "the type of a column": (
        lambda user: user.table().schema("job_id long").load().collect(),
        "the column job_id is string, not bigint",
    ),
    "overwriting a queue": (
        lambda user: (
            user.spark.sql("select 'a' as body")
            .write.format("disque")
            .mode("overwrite")
            .options(nodes=user.nodes, queue="mistakes")
            .save()
        ),
        'a queue cannot be overwritten: write with mode("append")',
    ),
    "outputMode complete": (
        lambda user: user.run(counted(user), "complete", "disque"),
        'a stream with outputMode("append") or outputMode("update")',
    ),
    "a body that is a number": (
        lambda user: user.write("select 1 as body"),
        "the column body is int, and must be string or binary",
    ),
    "another column": (
        lambda user: user.write("select 'a' as body, 1 as id"),
        "the sink does not know the column id: it takes body, queue",
    ),
    "no body": (lambda user: user.write("select 'a' as queue"), "the column body is missing"),
    "a body of null": (
        lambda user: user.write("select cast(null as string) as body"),
        "row 1 of its task cannot become a job: its body is null",
    ),
    "a job for no queue": (
        lambda user: user.write("select 'a' as body", queue=""),
        "the queue is missing: set option queue or a column queue. Statements on a table",
    ),
    "a name for the batches of a stream": (
        lambda user: user.stream(writeId="a").load(),
        "option writeId is only for what writes jobs, not a stream that is read",
    ),
}


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A node that wants a password."""
    fleet = Fleet(tmp_path_factory.mktemp("locked"))
    try:
        server = fleet.server()
        server.client.call("CONFIG", "SET", "requirepass", "sesame")
        yield name_of(server)
    finally:
        fleet.close()


@pytest.mark.sample(3)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_a_sentence(
    session: Any, cluster: Cluster, locked: str, tmp_path: Path, mistake: str
) -> None:
    make, sentence = MISTAKES[mistake]
    user = User(session, name_of(cluster[0]), locked, tmp_path)

    with pytest.raises(PySparkException) as caught:
        make(user)

    # PySpark's own words come before, and in an exception of a task a line of them.
    told = "\n".join(str(caught.value).splitlines()[:2])
    assert sentence in told
    assert "Traceback" not in str(caught.value)
    assert "UnboundLocalError" not in str(caught.value)
