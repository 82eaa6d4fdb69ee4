"""A query to be killed: `python -m tests.pipeline.connector.killing.query KIND FOLDER NODES`.

Runs until it is killed, or until the file FOLDER/finish is there: then it takes what there is, and
ends in order. Writes a line to FOLDER/batches for each batch that is over.
"""

import sys
import time
from pathlib import Path
from typing import Any, Final

from disque_trio.pipeline import session
from disque_trio.pipeline.connector.source import register

ROWS_PER_SECOND: Final = 500
SETTINGS: Final = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # It lives for seconds: to start soon matters more than to run fast.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
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
    terms = {"hold": "20", "retry": "5", "replicate": "2", "timeout": "10"}
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
            return files(source(spark, nodes).select("job_id", "body"), folder)
        case "sink":
            return jobs(rate(spark), nodes)
        case "through":
            return jobs(source(spark, nodes).select("body"), nodes)
    raise ValueError(kind)


def main(kind: str, place: str, nodes: str) -> None:
    """Run it."""
    folder = Path(place)
    spark = session.start("local[2]", app="killed", memory="1g", settings=SETTINGS)
    register(spark)
    query = writer(kind, spark, folder, nodes).option("checkpointLocation", str(folder / "c"))
    is_last = (folder / "finish").exists()
    if is_last and kind != "sink":
        query = query.trigger(availableNow=True)
    running = query.start()
    last = None
    while running.isActive:
        progress = running.lastProgress
        if progress is not None and progress["batchId"] != last and progress["numInputRows"]:
            last = progress["batchId"]
            with open(folder / "batches", "a") as lines:
                lines.write(f"{last} {progress['numInputRows']}\n")
        if is_last and kind == "sink" and last is not None:
            running.stop()
        time.sleep(0.05)
    if running.exception() is not None:
        raise running.exception()
    session.stop(spark)


if __name__ == "__main__":
    main(*sys.argv[1:])
