"""Jobs of one queue become jobs of another, each once, though the stream may be killed at any time.

    python queue_to_queue.py 10.0.0.1:7711 orders shipments checkpoint

It runs until it is stopped, and continues from its checkpoint when it is started again.
docs/pipeline-recipes.md explains it.
"""

import sys
from typing import Any

from disque_trio.pipeline import session


def start(spark: Any, nodes: str, source: str, target: str, checkpoint: str) -> Any:
    """Begin to take jobs of `source`. Returns the query."""
    orders = spark.readStream.format("disque").options(nodes=nodes, queue=source).load()
    shipments = orders.selectExpr("to_json(struct(job_id, cast(body as string) as body)) as body")
    sink = shipments.writeStream.format("disque").options(nodes=nodes, queue=target)
    return sink.option("checkpointLocation", checkpoint).start()


def main(nodes: str, source: str, target: str, checkpoint: str) -> None:
    """Run until it is stopped."""
    with session.running("local[*]") as spark:
        start(spark, nodes, source, target, checkpoint).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
