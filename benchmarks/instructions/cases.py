"""The operations whose instructions are counted.

A case prepares nodes and requests, and then does an operation `count` times within a `Meter`.
*Alone* means that sixteen clients send a request each in one turn of the node, and wait.
"""

import os
import re
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final

import attrs

from benchmarks.instructions.cluster import Cluster, Store, request
from disque_trio.client import commands
from disque_trio.statemachine.base import Reply
from disque_trio.wire.frames import FrameParser, encode_frame
from disque_trio.wire.resp import ReplyParser, encode_request
from disque_trio.worker.engine.engine import Engine
from disque_trio.worker.engine.records import Done, Outbox, Queue, Settings

ALONE: Final = 16
"""Clients in a turn, one request each."""
PIPELINE: Final = 16
PIPELINES: Final = 4
"""Clients in a turn, `PIPELINE` requests each."""
MANY: Final = 200
"""Jobs in a GETJOB or ACKJOB of many."""
GROUPS: Final = 10_000
HERE: Final = ("ADDJOB", "q", "ten bytes!", "0")
COPIES: Final = ("ADDJOB", "q", "ten bytes!", "10000", "REPLICATE", "3")
_ID: Final = re.compile(rb"D-[0-9a-f]{8}-.{24}-[0-9a-f]{4}")

Turns = list[list[bytes]]


@attrs.define
class Meter:
    """What happens within it is counted, and nothing else. It may be entered several times."""

    mark: Callable[[], None]
    """Called at the beginning and at the end."""

    def __enter__(self) -> None:
        self.mark()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.mark()


def mark() -> None:
    """callgrind writes what it has counted since the last call, and begins anew (`counting`)."""
    os.getppid()


@attrs.frozen
class Case:
    """An operation."""

    name: str
    title: str
    count: int
    """How often it is done; a multiple of what a turn holds."""
    run: Callable[[Meter, int], None]


def turns_of(requests: Sequence[bytes], pipeline: int = 1) -> Turns:
    """What a node is given turn by turn."""
    clients = ALONE if pipeline == 1 else PIPELINES
    lines = [b"".join(requests[i : i + pipeline]) for i in range(0, len(requests), pipeline)]
    return [lines[i : i + clients] for i in range(0, len(lines), clients)]


# One node.


def _plain(*words: str, pipeline: int = 1, jobs: int = 0, journal: bool = False) -> "_Run":
    """The same request again and again, to a node that has so many jobs."""

    def run(meter: Meter, count: int) -> None:
        cluster = Cluster(appendonly=journal)
        _fill(cluster, jobs)
        turns = turns_of([request(*words)] * count, pipeline)
        with meter:
            cluster.serve(0, turns)
        _check(cluster)

    return run


def _getjob(pipeline: int, *limit: str) -> "_Run":
    """GETJOB of a queue, which may have a limit that allows all."""

    def run(meter: Meter, count: int) -> None:
        cluster = Cluster()
        if limit:
            cluster.serve(0, [[request("QUEUE", "LIMIT", "q", *limit)]])
        _fill(cluster, count)
        turns = turns_of([request("GETJOB", "FROM", "q")] * count, pipeline)
        with meter:
            cluster.serve(0, turns)
        assert len(_ids(cluster)) == count

    return run


def _unique(meter: Meter, count: int) -> None:
    """Each job has a key of its own."""
    cluster = Cluster()
    turns = turns_of([request(*HERE, "UNIQUE", f"key-{number}") for number in range(count)])
    with meter:
        cluster.serve(0, turns)
    _check(cluster)


def _of_groups(meter: Meter, count: int) -> None:
    """GETJOB of a queue with a job of each of many groups."""
    cluster = Cluster()
    adds = [request(*HERE, "GROUP", f"group-{number}") for number in range(GROUPS)]
    cluster.serve(0, turns_of(adds, PIPELINE))
    cluster.sent(0)
    turns = turns_of([request("GETJOB", "FROM", "q")] * count)
    with meter:
        cluster.serve(0, turns)
    assert len(_ids(cluster)) == count


def _about_jobs(*words: str, at_once: int = 1, pipeline: int = 1, nodes: int = 1) -> "_Run":
    """A command about jobs that have been delivered."""

    def run(meter: Meter, count: int) -> None:
        cluster = Cluster(nodes)
        ids = _delivered(cluster, count)
        groups = [ids[i : i + at_once] for i in range(0, count, at_once)]
        turns = turns_of([request(*words, *group) for group in groups], pipeline)
        with meter:
            cluster.serve(0, turns)
        _check(cluster)

    return run


def _getjobs(meter: Meter, count: int) -> None:
    cluster = Cluster()
    _fill(cluster, count)
    turns = [[request("GETJOB", "COUNT", MANY, "FROM", "q")]] * (count // MANY)
    with meter:
        cluster.serve(0, turns)
    assert len(_ids(cluster)) == count


def _recovery(meter: Meter, count: int) -> None:
    """A journal is loaded at the start of a node."""
    store = Store()
    _fill(Cluster(appendonly=True, stores=[store]), count)
    assert store.file.size
    with meter:
        cluster = Cluster(appendonly=True, stores=[store], clients=0)
        cluster.pass_time(5)
    assert len(cluster.loops[0].node.state.jobs) == count


# Several nodes.


def _three(pipeline: int) -> "_Run":
    """ADDJOB REPLICATE 3: what all three nodes do."""

    def run(meter: Meter, count: int) -> None:
        cluster = Cluster(3)
        turns = turns_of([request(*COPIES)] * count, pipeline)
        with meter:
            cluster.serve(0, turns)
        assert len(_ids(cluster)) == count

    return run


def _one_client(meter: Meter, count: int) -> None:
    """The same for a client that waits alone."""
    cluster = Cluster(3)
    turns = [[request(*COPIES)]] * count
    with meter:
        cluster.serve(0, turns)
    assert len(_ids(cluster)) == count


def _sender(meter: Meter, count: int) -> None:
    cluster = Cluster(3, clients=count)
    with meter:
        for _ in range(count // ALONE):
            cluster.turn(0, [request(*COPIES)] * ALONE)
            cluster.clients[0] = cluster.clients[0][ALONE:] + cluster.clients[0][:ALONE]
    cluster.step(1)
    cluster.step(2)
    with meter:
        cluster.step(0)
    assert len(_ids(cluster)) == count


def _holder(meter: Meter, count: int) -> None:
    cluster = Cluster(3, clients=count)
    for _ in range(count // ALONE):
        cluster.turn(0, [request(*COPIES)] * ALONE)
        cluster.clients[0] = cluster.clients[0][ALONE:] + cluster.clients[0][:ALONE]
    with meter:
        cluster.step(1)
    cluster.step(2)
    cluster.step(0)
    assert len(_ids(cluster)) == count


def _getjob_of_copies(meter: Meter, count: int) -> None:
    cluster = Cluster(3)
    cluster.serve(0, turns_of([request(*COPIES)] * count, PIPELINE))
    _ids(cluster)
    turns = turns_of([request("GETJOB", "FROM", "q")] * count)
    with meter:
        cluster.serve(0, turns)
    assert len(_ids(cluster)) == count


def _moved(meter: Meter, count: int) -> None:
    """Clients wait at a node, and jobs are added at another; each is acknowledged."""
    cluster = Cluster(2)
    asks = [request("GETJOB", "FROM", "q")] * ALONE
    adds = [request(*HERE)] * ALONE
    found = 0
    with meter:
        for _ in range(count // ALONE):
            cluster.serve(1, [asks])
            cluster.serve(0, [adds])
            ids = _ids(cluster, 1)
            found += len(ids)
            cluster.serve(1, [[request("ACKJOB", id) for id in ids]])
    assert found == count


def _idle(meter: Meter, count: int) -> None:
    """Seconds of a cluster with nothing to do."""
    cluster = Cluster(3)
    with meter:
        cluster.pass_time(count * 1000)


# Without a node.


def _frame(meter: Meter, count: int) -> None:
    """A REPLJOB is parsed and encoded."""
    cluster = Cluster(3)
    cluster.turn(0, [request(*COPIES)])
    [(_, data)] = cluster.loops[1].inputs
    parser = FrameParser()
    with meter:
        for _ in range(count):
            [frame] = parser.feed(data)
            encode_frame(frame)


def _client(meter: Meter, count: int) -> None:
    """A client makes an ADDJOB and a GETJOB, and reads their replies."""
    cluster = Cluster()
    cluster.serve(0, [[request(*HERE), request("GETJOB", "WITHMETA", "FROM", "q")]])
    added, got = cluster.sent(0)
    parser = ReplyParser()
    with meter:
        for _ in range(count):
            add = commands.addjob("q", b"ten bytes!", retry=60)
            encode_request(add.words)
            add.result(parser.feed(added)[0])
            get = commands.getjob("q", timeout=1.0)
            encode_request(get.words)
            get.result(parser.feed(got)[0])


_GREETING: Final = b"disque_version:1\r\nfeatures:withmeta,tokens,release,tied,unblock\r\n"


def _worker(meter: Meter, count: int) -> None:
    """The engine of a worker has a job that does nothing, from GETJOB to the reply of ACKJOB."""
    now = 1_000_000
    engine = Engine(Settings(nodes=("n1",), queues=(Queue(name=b"q"),), concurrency=ALONE), now)
    engine.tick(now)
    left = [b"D-11111111-%024d-05a1" % each for each in range(count)]
    done = 0
    with meter:
        while done < count:
            now += 1000
            out = engine.take()
            replies: dict[int, list[Reply]] = {}
            for send in out.sends:
                replies.setdefault(send.link, []).append(_of_node(send.words, left))
            for link, several in replies.items():
                engine.answered(now, link, *several)
            if out.starts:
                done += len(out.starts)
                engine.finished_all(now, [(start.id, Done()) for start in out.starts])
            assert out != Outbox(), "the engine waits"


def _of_node(words: Sequence[bytes], left: list[bytes]) -> Reply:
    """What a node answers."""
    match words[0]:
        case b"INFO":
            return _GREETING
        case b"CLIENT":
            return 7
        case b"GETJOB":
            ids = left[:ALONE]
            del left[:ALONE]
            return [[b"q", id, b"body", *_META] for id in ids]
        case _:
            return len(words) - 1


_META: Final[list[Reply]] = [
    b"nacks", 0, b"additional-deliveries", 0, b"lease-ms", 60_000, b"token", b"a" * 20,
]  # fmt: skip


# Helpers.


def _fill(cluster: Cluster, jobs: int) -> None:
    cluster.serve(0, turns_of([request(*HERE)] * jobs, PIPELINE))
    cluster.sent(0)


def _delivered(cluster: Cluster, count: int) -> list[bytes]:
    """So many jobs that have been delivered, with copies if there are other nodes."""
    words = HERE if len(cluster.loops) == 1 else COPIES
    cluster.serve(0, turns_of([request(*words)] * count, PIPELINE))
    cluster.sent(0)
    cluster.serve(0, [[request("GETJOB", "COUNT", count, "FROM", "q")]])
    ids = _ids(cluster)
    assert len(ids) == count
    return ids


def _ids(cluster: Cluster, number: int = 0) -> list[bytes]:
    """The ids in what clients have been answered."""
    return _ID.findall(b"".join(cluster.sent(number)))


def _check(cluster: Cluster) -> None:
    """No request has failed, and each was answered."""
    answered = b"".join(cluster.sent(0))
    assert answered
    assert not answered.startswith(b"-"), answered
    assert b"\n-" not in answered, answered


_Run = Callable[[Meter, int], None]

CASES: Final = (
    Case("ping", "PING", 320, _plain("PING")),
    Case("ping-16", "PING, pipeline 16", 640, _plain("PING", pipeline=PIPELINE)),
    Case("add", "ADDJOB", 320, _plain(*HERE)),
    Case("add-16", "ADDJOB, pipeline 16", 640, _plain(*HERE, pipeline=PIPELINE)),
    Case("add-group", "ADDJOB GROUP", 320, _plain(*HERE, "GROUP", "g")),
    Case("add-unique", "ADDJOB UNIQUE", 320, _unique),
    Case("get", "GETJOB", 320, _getjob(1)),
    Case("get-groups", f"GETJOB, a queue of {GROUPS:,} groups", 320, _of_groups),
    Case("get-limit", "GETJOB, CONCURRENCY", 320, _getjob(1, "CONCURRENCY", "1000")),
    Case("get-16", "GETJOB, pipeline 16", 640, _getjob(PIPELINE)),
    Case("get-200", "GETJOB COUNT 200, a job", 800, _getjobs),
    Case("ack", "ACKJOB", 320, _about_jobs("ACKJOB")),
    Case("ack-200", "ACKJOB of 200, a job", 800, _about_jobs("ACKJOB", at_once=MANY)),
    Case("nack", "NACK", 160, _about_jobs("NACK")),
    Case("working", "WORKING", 320, _about_jobs("WORKING")),
    Case("qstat", "QSTAT", 160, _plain("QSTAT", "q", jobs=640)),
    Case(
        "jscan-100",
        "JSCAN, a page of 100 jobs",
        16,
        _plain("JSCAN", "0", "COUNT", "100", jobs=1280),
    ),
    Case("everysec", "ADDJOB, appendfsync everysec", 320, _plain(*HERE, journal=True)),
    Case(
        "everysec-16",
        "ADDJOB, pipeline 16, appendfsync everysec",
        640,
        _plain(*HERE, pipeline=PIPELINE, journal=True),
    ),
    Case("recovery", "a job of a journal that is loaded", 1000, _recovery),
    Case("three-1", "ADDJOB REPLICATE 3, one client", 80, _one_client),
    Case("three", "ADDJOB REPLICATE 3", 160, _three(1)),
    Case("three-16", "ADDJOB REPLICATE 3, pipeline 16", 320, _three(PIPELINE)),
    Case("three-sender", "the same, the node that adds", 160, _sender),
    Case("three-holder", "the same, one of the others", 160, _holder),
    Case("three-get", "GETJOB of a job with 3 copies", 160, _getjob_of_copies),
    Case("three-ack", "ACKJOB of a job with 3 copies", 160, _about_jobs("ACKJOB", nodes=3)),
    Case("move", "added at one node, consumed at another", 160, _moved),
    Case("three-idle", "a second of three idle nodes", 20, _idle),
    Case("repljob", "REPLJOB is parsed and encoded", 160, _frame),
    Case("client", "ADDJOB and GETJOB of a client", 80, _client),
    Case("worker", "a job of a worker's engine", 320, _worker),
)
