"""Queries to be killed: `python -m tests.pipeline.connector.killing.query KINDS FOLDER NODES`.

Run until they are killed; or, if the file FOLDER/finish is there, take what there is, and end in
order. A line in FOLDER/batches-KIND tells of each batch that is over.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any, Final

from disque_trio.pipeline import session
from disque_trio.pipeline.connector.source import register

ROWS_PER_SECOND: Final = int(os.environ.get("JOBS_PER_SECOND", "500"))
"""Less where the machine has much else to do."""
MASTER: Final = os.environ.get("MASTER", "local[2]")
"""With `local-cluster[2,1,1024]`, executors are processes that can be killed."""
SETTINGS: Final = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # It lives for seconds: to start soon matters more than to run fast.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # Executors only: a task that runs longer than most others runs a second time beside it.
    "spark.speculation": "true",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "1ms",
    "spark.task.maxFailures": "20",
}


def source(spark: Any, nodes: str) -> Any:
    """The jobs of the queue `in`."""
    options = {"nodes": nodes, "queue": "in", "maxJobsPerTrigger": "2000", "timeout": "10"}
    return spark.readStream.format("disque").options(**options).load()


def files(frame: Any, folder: Path) -> Any:
    """Into files, each row once: Spark's own sink is that good."""
    return frame.writeStream.format("parquet").option("path", str(folder / "out"))


def jobs(frame: Any, nodes: str) -> Any:
    """Into jobs of the queue `out`."""
    replicas = os.environ.get("REPLICATE", "2")
    terms = {"hold": "20", "retry": "30", "replicate": replicas, "timeout": "10"}
    options = {"nodes": nodes, "queue": "out", **terms}
    return frame.writeStream.format("disque").options(**options)


def rate(spark: Any) -> Any:
    """Numbers, the same again after a crash."""
    stream = spark.readStream.format("rate").option("rowsPerSecond", ROWS_PER_SECOND).load()
    return stream.selectExpr("cast(value as string) as body")


def writer(kind: str, spark: Any, folder: Path, nodes: str) -> Any:
    """The query of a kind, not started."""
    match kind:
        case "source":
            made = files(source(spark, nodes).select("job_id", "body"), folder)
        case "sink":
            made = jobs(rate(spark), nodes)
        case "rows":
            stream = spark.readStream.schema("body string").option("maxFilesPerTrigger", 2)
            made = jobs(stream.parquet(str(folder / "in")), nodes)
        case "through":
            made = jobs(source(spark, nodes).select("body"), nodes)
        case _:
            raise ValueError(kind)
    return made.option("checkpointLocation", str(folder / kind))


class Watched:
    """A running query, and the batches that it has told of."""

    def __init__(self, kind: str, query: Any, folder: Path) -> None:
        self.kind = kind
        self.query = query
        self.lines = folder / f"batches-{kind}"
        self.last: int | None = None

    def look(self) -> None:
        """Tell of its latest batch."""
        progress = self.query.lastProgress
        if progress is None or progress["batchId"] == self.last or not progress["numInputRows"]:
            return
        self.last = progress["batchId"]
        with open(self.lines, "a") as lines:
            lines.write(f"{self.last} {progress['numInputRows']}\n")


def main(kinds: str, place: str, nodes: str) -> None:
    """Run them."""
    folder = Path(place)
    spark = session.start(MASTER, app="killed", memory="1g", settings=SETTINGS)
    register(spark)
    is_last = (folder / "finish").exists()
    running = []
    for kind in kinds.split(","):
        query = writer(kind, spark, folder, nodes)
        if kind == "rows":  # shall last for some kills
            query = query.trigger(processingTime="1 second")
        if is_last and kind != "sink":  # the rate has no end
            query = query.trigger(availableNow=True)
        running.append(Watched(kind, query.start(), folder))
    while all(each.query.isActive for each in running) or (is_last and not is_over(running)):
        for each in running:
            each.look()
            if is_last and each.kind == "sink" and each.last is not None:
                each.query.stop()
        time.sleep(0.05)
    for each in running:
        if each.query.exception() is not None:
            raise each.query.exception()
    session.stop(spark)


def is_over(running: list[Watched]) -> bool:
    """Have all ended?"""
    return not any(each.query.isActive for each in running)


if __name__ == "__main__":
    main(*sys.argv[1:])
