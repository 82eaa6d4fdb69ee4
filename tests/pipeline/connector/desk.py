"""What the connector's tests ask of servers."""

import time
from collections.abc import Callable
from contextlib import ExitStack

from disque_trio.pipeline.connector import options
from disque_trio.pipeline.connector.adding import Adder
from disque_trio.pipeline.connector.consumer import Consumer
from disque_trio.pipeline.connector.nodes import Nodes
from tests.cluster.processes import Cluster, Server, eventually
from tests.cluster.talk import Delivery, as_items


def names_of(cluster: Cluster) -> list[str]:
    """The nodes as the connector names them."""
    return [name_of(server) for server in cluster.servers]


def name_of(server: Server) -> str:
    """One of them."""
    return f"127.0.0.1:{server.port}"


def given(cluster: Cluster, **more: object) -> dict[str, str]:
    """Options as Spark hands them over."""
    texts = {key: str(value) for key, value in more.items()}
    # On a machine that is busy with other tests a node may be slow and well.
    return {"nodes": ",".join(names_of(cluster)), "timeout": "20", **texts}


class Desk:
    """Clients of clusters, who hang up when the test ends."""

    def __init__(self) -> None:
        self._closing = ExitStack()

    def consumer(self, cluster: Cluster, queue: str, **more: object) -> Consumer:
        """What a stream has in hand."""
        everything = given(cluster, queue=queue, **more)
        consumer = Consumer(options.link(everything), options.stream(everything))
        self._closing.callback(consumer.close)
        return consumer

    def nodes(self, cluster: Cluster, **more: object) -> Nodes:
        """The cluster as a client sees it."""
        return self._closing.enter_context(Nodes(options.link(given(cluster, **more))))

    def dialled(self, clock: Callable[[], float] = time.monotonic, /, **given: str) -> Nodes:
        """The same, by options."""
        return self._closing.enter_context(Nodes(options.link(given), clock))

    def adder(self, cluster: Cluster, first: int = 0, **more: object) -> Adder:
        """A task that adds jobs."""
        return self._adder(self.nodes(cluster, **more), first)

    def alone(self, server: Server) -> Adder:
        """The same, at a server without a cluster."""
        return self._adder(self.dialled(nodes=name_of(server)), 0)

    def _adder(self, nodes: Nodes, first: int) -> Adder:
        adder = Adder(nodes, first, connections=3, timeout_ms=5000, patience_s=0)
        self._closing.callback(adder.close)
        return adder

    def close(self) -> None:
        """Hang up."""
        self._closing.close()


def lengths(cluster: Cluster, queue: str) -> int:
    """Jobs that wait, on all nodes that run."""
    running = [server for server in cluster.servers if server.is_running()]
    return sum(server.client.number("QLEN", queue) for server in running)


def unfinished(cluster: Cluster, queue: str) -> int:
    """Copies of jobs that are not acknowledged where they are, on all nodes that run."""
    scan = ("JSCAN", "BUSYLOOP", "QUEUE", queue, "STATE", "queued", "STATE", "active")
    running = [server for server in cluster.servers if server.is_running()]
    return sum(len(as_items(server.client.items(*scan)[1])) for server in running)


def drain(cluster: Cluster, queue: str, count: int, within_s: float = 30.0) -> list[Delivery]:
    """Deliver and acknowledge so many jobs, and whatever waits then."""
    found: list[Delivery] = []

    def has_all() -> bool:  # some may be on their way between two nodes
        for server in cluster.servers:
            while server.is_running() and (got := server.client.get(queue, count=500)):
                server.client.call("ACKJOB", *(each.id for each in got))
                found.extend(got)
        return len(found) >= count

    eventually(has_all, within_s, f"{count} jobs wait in {queue}")
    return found
