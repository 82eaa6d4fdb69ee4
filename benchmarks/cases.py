"""The table of cases, in the order in which they run and are printed, and the targets."""

from functools import partial
from typing import Final

from benchmarks import measures, waits
from benchmarks.case import (
    ALWAYS,
    CPU,
    EVERYSEC,
    FRESH,
    NOWHERE,
    RATE,
    SEVEN,
    THREE,
    THREE_ALWAYS,
    THREE_EVERYSEC,
    Case,
    Demand,
    Figure,
    Target,
)
from benchmarks.contenders import ALL, DISQUE, QUEUES, REPLICATED, RESP

_LATENCY: Final = (Figure("p50", "ms p50"), Figure("p99", "ms p99"), Figure("p99.9", "ms p99.9"))
_RESIDENT: Final = Figure("resident", "bytes/job")
_IDLE: Final = Figure("idle", "% of a core")
_WAIT: Final = (Figure("p50", "ms p50"), Figure("worst", "ms, the longest"))
_EVENTS: Final = tuple(
    Figure(name, f"events/s, {what}", more_is_better=True)
    for name, what in (
        ("bare", "no vector clocks"),
        ("clocks", "vector clocks"),
        ("judged", "judged"),
    )
)
_FLOW: Final = (
    Figure("added", "added/s", more_is_better=True),
    Figure("adding", "CPU µs to add"),
    Figure("drained", "drained/s", more_is_better=True),
    Figure("draining", "CPU µs to drain"),
)
_THREE_COPIES: Final = (b"REPLICATE", b"3")

_ALONE: Final = (
    Case("ping", "PING", partial(measures.ping, pipeline=1), kinds=RESP),
    Case("ping-16", "PING, pipeline 16", partial(measures.ping, pipeline=16), kinds=RESP),
    Case("add", "ADDJOB", measures.add, kinds=ALL),
    *(
        Case(
            f"add-{depth}", f"ADDJOB, pipeline {depth}",
            partial(measures.add, number=number, pipeline=depth), kinds=ALL,
        )
        for depth, number in ((16, 300_000), (128, 400_000))
    ),
    Case("get", "GETJOB", measures.get, kinds=RESP),
    Case(
        "get-16", "GETJOB, pipeline 16",
        partial(measures.get, number=200_000, pipeline=16), kinds=RESP,
    ),
    Case(
        "drain", "GETJOB COUNT 200, ACKJOB 200",
        partial(measures.drain, number=200_000), kinds=ALL,
    ),
    Case(
        "latency", "add → worker that waits, idle",
        partial(measures.latency, per_second=500, seconds=4, workers=10),
        figures=_LATENCY, kinds=ALL,
    ),
    Case(
        "latency-half", "add → worker that waits, half load",
        partial(measures.latency, per_second=500, seconds=4, workers=10, load=True),
        figures=_LATENCY, kinds=RESP,
    ),
    Case(
        "latency-10k", "add → worker that waits, 10,000 jobs/s",
        partial(measures.latency, per_second=10_000, seconds=3, workers=50),
        figures=(*_LATENCY, CPU), kinds=ALL,
    ),
    Case("turn", "add, get, ack in turn", measures.turn, kinds=ALL),
    Case("body-1k", "the same, 1 kB", partial(measures.turn, body=1000), kinds=ALL),
    Case(
        "body-100k", "the same, 100 kB",
        partial(measures.turn, body=100_000, number=5000, connections=10, jobs=10), kinds=ALL,
    ),
    Case(
        "body-10m", "the same, 10 MB",
        partial(measures.turn, body=10_000_000, number=60, connections=3, jobs=0), kinds=ALL,
    ),
    Case("crowd", "ADDJOB beside 10,000 idle connections", measures.crowd, kinds=ALL, rounds=3),
    Case("idle", "a node that idles", measures.idle, figures=(_IDLE,), kinds=ALL, rounds=3),
)  # fmt: skip

_CLUSTER: Final = (
    Case(
        "three-add", "ADDJOB REPLICATE 3",
        partial(measures.add, number=20_000, options=_THREE_COPIES), THREE,
    ),
    Case(
        "three-add-16", "ADDJOB REPLICATE 3, pipeline 16",
        partial(measures.add, number=30_000, pipeline=16, options=_THREE_COPIES), THREE,
    ),
    Case(
        "three-drain", "drain of jobs with 3 copies",
        partial(measures.drain, number=40_000, options=_THREE_COPIES), THREE,
    ),
    Case(
        "federation", "added at one node, consumed at another",
        partial(measures.federate, number=40_000), THREE,
    ),
    Case("three-idle", "three nodes that idle", measures.idle, THREE, (_IDLE,), rounds=3),
)  # fmt: skip

_WAITS: Final = tuple(
    Case(f"meet-{name}", title, partial(waits.measure, scenario=scenario), THREE, _WAIT)
    for name, title, scenario in (
        ("first", "worker at B, first job at A", waits.first_job),
        ("second", "second job at A, worker at A", waits.second_job),
        ("nack", "worker at A, NACK at B", waits.after_nack),
        ("retry", "worker at A, RETRY is over at B", waits.after_retry),
        ("delay", "worker at A, DELAY is over at B", waits.after_delay),
        ("comers", "workers come and go at B, few jobs at A", waits.sporadic),
    )
)

_SEVEN_NODES: Final = (
    Case(
        "seven-add", "ADDJOB REPLICATE 3 among seven nodes",
        partial(measures.add, number=20_000, pipeline=16, options=_THREE_COPIES), SEVEN, rounds=3,
    ),
    Case("seven-idle", "seven nodes that idle", measures.idle, SEVEN, (_IDLE,), rounds=3),
)  # fmt: skip

_DISK: Final = tuple(
    case
    for place in (EVERYSEC, ALWAYS)
    for case in (
        Case(
            f"add-{place.name}", f"ADDJOB, appendfsync {place.name}",
            partial(measures.add, number=50_000), place, kinds=ALL,
        ),
        Case(
            f"add-16-{place.name}", f"ADDJOB, pipeline 16, appendfsync {place.name}",
            partial(measures.add, number=100_000, pipeline=16), place, kinds=ALL,
        ),
    )
)  # fmt: skip

_FRESH: Final = (
    Case(
        "start", "start of a node", measures.start, FRESH,
        (Figure("start", "ms to the first PONG"), Figure("cpu", "CPU ms")), ALL,
    ),
    Case("resident", "resident, body of 100 bytes", measures.resident, FRESH, (_RESIDENT,), ALL, 2),
    Case(
        "delayed", "a million delayed jobs", measures.delayed, FRESH,
        (*RATE, _RESIDENT, _IDLE), rounds=1,
    ),
)  # fmt: skip

_FLAT: Final = (
    *(
        Case(
            f"jobs-{name}", f"add, get, ack among {number:,} jobs",
            partial(measures.turn, jobs=number), FRESH, rounds=rounds,
        )
        for name, number, rounds in (("1k", 1000, 3), ("100k", 100_000, 3), ("2m", 2_000_000, 2))
    ),
    *(
        Case(
            f"queues-{name}", f"add, get, ack in {number:,} queues",
            partial(measures.turn, jobs=number, queues=number), FRESH, rounds=3,
        )
        for name, number in (("1", 1), ("1k", 1000), ("100k", 100_000))
    ),
    *(
        Case(
            f"connections-{name}", f"add, get, ack by {number:,} clients",
            partial(measures.turn, number=60_000, connections=number), FRESH, rounds=3,
        )
        for name, number in (("10", 10), ("1k", 1000), ("10k", 10_000))
    ),
)  # fmt: skip

_SIMULATOR: Final = (
    Case("simulator", "simulator, a core", measures.simulate, NOWHERE, _EVENTS, frozenset(), 3),
)

_PEERS: Final = (
    *(
        Case(
            f"peers-{place.name}", title,
            partial(measures.flow, number=20_000, options=_THREE_COPIES),
            place, _FLOW, kinds, is_by_server=True,
        )
        for place, title, kinds in (
            (THREE, "three copies", REPLICATED),
            (THREE_EVERYSEC, "the same, appendfsync everysec", DISQUE),
            (THREE_ALWAYS, "the same, appendfsync always", DISQUE),
        )
    ),
    Case("peers-turn", "add, get, ack in turn", measures.turn, kinds=QUEUES, is_by_server=True),
)  # fmt: skip

CASES: Final = (
    *_ALONE, *_CLUSTER, *_WAITS, *_SEVEN_NODES, *_DISK, *_FRESH, *_FLAT, *_SIMULATOR, *_PEERS,
)  # fmt: skip

TARGETS: Final = (
    *(Target(case, "speed", Demand.RATIO, 0.9) for case in ("ping", "add", "get")),
    *(
        Target(case, "speed", Demand.RATIO, 1.0)
        for case in ("ping-16", "add-16", "add-128", "get-16", "drain")
    ),
    Target("three-add", "speed", Demand.RATIO, 0.9),
    Target("three-add-16", "speed", Demand.RATIO, 1.2),
    Target("three-drain", "speed", Demand.RATIO, 0.9),
    Target("federation", "speed", Demand.RATIO, 0.7),
    *(Target(case.name, "speed", Demand.RATIO, 0.8) for case in _DISK),
    *(Target(case.name, "p50", Demand.LIMIT, 20.0) for case in _WAITS),
    Target("resident", "resident", Demand.RATIO, 1.0),
    Target("three-idle", "idle", Demand.EXCESS, 1.0),
    Target("latency-10k", "p99", Demand.RATIO, 1 / 1.3),
    *(
        Target(f"{what}-{most}", "cpu", Demand.GROWTH, 1.2, since=f"{what}-{least}")
        for what, least, middle, large in (
            ("jobs", "1k", "100k", "2m"),
            ("queues", "1", "1k", "100k"),
            ("connections", "10", "1k", "10k"),
        )
        for most in (middle, large)
    ),
    Target("simulator", "bare", Demand.VALUE, 110_000),
    *(
        Target("peers-three", figure, Demand.RATIO, 1.0, against=peer)
        for peer in ("rabbitmq", "jetstream-file", "jetstream-memory")
        for figure in ("added", "drained")
    ),
    *(
        Target("peers-turn", "cpu", Demand.RATIO, 1.0, against=peer)
        for peer in ("redis-streams", "beanstalkd")
    ),
)
