"""A scenario: a family of runs, written in TOML; each seed makes one plan of it.

The records are the schema: each field is a key of its table, with its kind, meaning and default
(docs/scenario-keys.md lists them). `file.load` reads a file, `expand.expand` makes plans.
"""

from typing import Any, Final

import attrs

from disque_trio.sim.scenarios import vocabulary
from disque_trio.sim.scenarios.fault_spec import FaultSpec, check_fault
from disque_trio.sim.scenarios.marks import MARKS
from disque_trio.sim.scenarios.ranges import Choice, Range
from disque_trio.sim.scenarios.schema import Kind, Spot, array_of, key, read_record, table
from disque_trio.sim.scenarios.value_types import (
    DIRECTIVES,
    DURATION,
    FLAG,
    LABEL,
    MILLIS,
    NODES,
    POSITIVE_DURATION,
    POSITIVE_SECONDS,
    PPM,
    QUEUES,
    RATE,
    SECONDS,
    SHARE,
    SIGNED_MILLIS,
    SIZE,
    TEXT,
    choice,
    count,
    one_of,
    weights,
    whole,
    words_of,
)
from disque_trio.statemachine.tombstones import GENERATION

VERSION: Final = 1


@attrs.frozen(kw_only=True)
class Seeds:
    """How many seeds are worth running."""

    ci: int = key(count(1), "seeds of a quick sweep: 0 up to here", default=100)
    nightly: int = key(count(1), "seeds of a thorough sweep", default=10_000)


@attrs.frozen(kw_only=True)
class ClusterSpec:
    """The nodes."""

    nodes: Range = key(whole(1, 1000), "how many nodes", default=5)
    config: tuple[tuple[str, str], ...] = key(
        DIRECTIVES, "directives of every node, as in disque.conf", default={}
    )
    aof: tuple[str, ...] = key(
        words_of(one_of("off", "no", "everysec", "always")),
        "nodes keep a journal, synced so (`appendfsync`), or none; of several one is drawn",
        default="off",
    )
    sync: Range = key(DURATION, "how long a disk takes to sync", default="200us..5ms")
    tombstones: int = key(
        count(1),
        "how many ids of finished jobs make a generation of a node's tombstones; two generations "
        "are kept",
        default=GENERATION,
    )
    forming: str = key(
        one_of("known", "meet"),
        "`known`: nodes know each other from the start; `meet`: the first meets the others",
        default="known",
    )


@attrs.frozen(kw_only=True)
class LatencySpec:
    """How long a message travels."""

    fast: Range = key(DURATION, "most messages; drawn for each", default="500us..2ms")
    slow: Range = key(DURATION, "the slow ones; drawn for each", default="100ms..2s")
    p_slow: Range = key(SHARE, "which share is slow", default=0)
    scale: Range = key(RATE, "all of these times so much, drawn once per run", default=1)


def _read_latency(value: Any, spot: Spot) -> LatencySpec:
    if isinstance(value, dict):
        return read_record(LatencySpec, value, spot)
    return LatencySpec(fast=DURATION.take(value, spot))


LATENCY: Final = Kind("a duration or range, or a table", _read_latency, LatencySpec)


@attrs.frozen(kw_only=True)
class LinkSpec:
    """The links between nodes. Chances count only where the model is hostile."""

    model: tuple[str, ...] = key(
        words_of(one_of("stream", "hostile")),
        "`stream` keeps order and loses only what was on its way when a link breaks; `hostile` "
        "treats every message by itself",
        default="stream",
    )
    latency: LatencySpec = key(LATENCY, "how long messages travel", default={})
    drop: Range = key(SHARE, "chance that a message is lost", default=0)
    duplicate: Range = key(SHARE, "chance that a message comes twice", default=0)
    reorder: Range = key(SHARE, "chance that a message is overtaken", default=0)
    bandwidth: Range = key(SIZE, "bytes per second of a link; 0 is no limit", default=0)


@attrs.frozen(kw_only=True)
class ClockSpec:
    """The nodes' clocks, drawn for each node."""

    drift_ppm: Range = key(PPM, "how much faster than true time both clocks run", default=0)
    wall_offset: Range = key(SIGNED_MILLIS, "how far the wall clock is ahead", default="0s")


@attrs.frozen(kw_only=True)
class JobSpec:
    """What producers add; drawn for each job."""

    queue: tuple[str, ...] = key(QUEUES, "the queue, or several to choose from", default="q")
    body: Range = key(SIZE, "size of the body", default=16)
    timeout: Range = key(MILLIS, "how long ADDJOB may wait for copies", default="1s")
    replicate: Choice = key(
        choice(whole(1, 65535)), "REPLICATE; never more than there are nodes", default="default"
    )
    delay: Choice = key(choice(SECONDS), "DELAY", default="default")
    retry: Choice = key(
        choice(SECONDS), "RETRY; `0s` is at most once, with a single copy", default="default"
    )
    ttl: Choice = key(choice(POSITIVE_SECONDS), "TTL", default="default")
    maxlen: Choice = key(choice(whole(1)), "MAXLEN", default="default")
    async_: Range = key(SHARE, "which share is added with ASYNC", default=0, name="async")


_START: Final = "when it begins"
_STOP: Final = "when it ends; the end of the chaos if not said"
_FAMILY: Final = "what `swarm.families` calls it"


@attrs.frozen(kw_only=True)
class ProducerSpec:
    """Producers that add jobs at their own pace, whether or not they are answered."""

    at: tuple[int, ...] | str = key(
        NODES,
        "one producer for each of these nodes; `random` is one that asks any node",
        default="all",
    )
    rate: Range = key(RATE, "jobs per second of each, drawn once per run")
    jobs: Range | None = key(whole(1), "how many each adds at most", default=None)
    burst: Range = key(whole(1), "how many come at once, at the same rate overall", default=1)
    pipeline: Range = key(
        whole(1), "how many it sends on one connection without waiting; drawn for each", default=1
    )
    dies: Range = key(
        SHARE,
        "chance, for each job, that the producer drops the connection with all that is under way",
        default=0,
    )
    dies_after: Range = key(DURATION, "how long after sending that job", default="0ms..5ms")
    start: Range = key(DURATION, _START, default="0s")
    stop: Range | None = key(DURATION, _STOP, default=None)
    job: JobSpec = key(table(JobSpec), "the jobs", default={})
    family: str | None = key(LABEL, _FAMILY, default=None)


@attrs.frozen(kw_only=True)
class ConsumerSpec:
    """Workers that take jobs, work, and then do what their mix says."""

    at: tuple[int, ...] | str = key(
        NODES, "at which nodes; `random` draws one for each worker", default="all"
    )
    workers: Range = key(whole(1), "how many at each node", default=1)
    queues: tuple[str, ...] | None = key(
        QUEUES, "what they read; every queue that is written if not said", default=None
    )
    reads: Range | None = key(
        whole(1), "how many of these queues a worker reads, drawn for each; all if not said",
        default=None,
    )  # fmt: skip
    by_queue: bool = key(
        FLAG, "`workers` are for each of the queues, and read it alone", default=False
    )
    count: Range = key(whole(1), "GETJOB's COUNT", default=1)
    poll: Range = key(MILLIS, "GETJOB's TIMEOUT", default="1s")
    polls: Range | None = key(
        whole(1), "after how many GETJOBs it disconnects, drawn for each visit; never if not said",
        default=None,
    )  # fmt: skip
    visit: Range | None = key(
        POSITIVE_DURATION,
        "after how long it disconnects, also in the middle of a GETJOB; never if not said",
        default=None,
    )
    away: Range = key(DURATION, "how long until it connects again", default="1s..5s")
    roams: bool = key(
        FLAG, "it connects to any node each time; to its own after the chaos", default=False
    )
    work: Range = key(DURATION, "how long a job takes; drawn for each", default="5ms..50ms")
    ack: tuple[tuple[str, Range], ...] = key(
        weights(tuple(vocabulary.WAYS)),
        "what becomes of a job that was worked on",
        default={"ackjob": 1},
    )
    start: Range = key(DURATION, _START, default="0s")
    stop: Range | None = key(DURATION, "when it ends; the end of the run if not said", default=None)
    family: str | None = key(LABEL, _FAMILY, default=None)


@attrs.frozen(kw_only=True)
class ObserverSpec:
    """Clients that ask nodes what they have (QLEN, QPEEK, QSTAT, SHOW, QSCAN, JSCAN, INFO). The
    checker compares the replies with the rows (S22)."""

    count: Range = key(whole(1), "how many", default=1)
    every: Range = key(
        POSITIVE_DURATION,
        "how long each waits from one query to the next, at any node; drawn for each query",
        default="100ms..500ms",
    )
    share: Range = key(SHARE, "chance that a seed has them", default=1)


@attrs.frozen(kw_only=True)
class SwarmSpec:
    """What a seed may leave out. A feature that is always on hides what it masks."""

    families: tuple[str, ...] | None = key(
        words_of(LABEL),
        "families of faults, producers and consumers that a seed may leave out; and of those that "
        "every scenario has, see below",
        default=None,
    )
    p: Range = key(SHARE, "chance that a family stays", default=0.5)
    options: bool = key(FLAG, "each option of ADDJOB is left out likewise", default=False)
    acks: bool = key(FLAG, "each way to end a job but ACKJOB is left out likewise", default=False)


@attrs.frozen(kw_only=True)
class EndSpec:
    """How it ends."""

    chaos: Range = key(POSITIVE_DURATION, "when faults and adds end", default="60s")
    heal: tuple[str, ...] = key(
        words_of(one_of("full", "core")),
        "`full` heals everything, `core` a majority alone; of several one is drawn",
        default="full",
    )
    drain: Range | None = key(
        DURATION, "how long the run goes on after that; computed if not said", default=None
    )


@attrs.frozen(kw_only=True)
class ExpectSpec:
    """What every run must show."""

    lost: int = key(count(0), "how many jobs may be lost", default=0)
    must_lose: bool = key(FLAG, "a control arm: runs fail that lose nothing", default=False)
    duplicates: tuple[str, ...] = key(
        array_of(one_of(*vocabulary.DUPLICATE_CAUSES, says="a cause, `D0` to `D13`")),
        "causes of duplicates that may occur",
        default=[],
    )
    sometimes: tuple[str, ...] = key(
        array_of(one_of(*MARKS, says="a mark")),
        "marks of which each must be hit by some seed of a sweep",
        default=[],
    )


@attrs.frozen(kw_only=True)
class RunSpec:
    """How it is recorded."""

    codec_every: int = key(
        count(1), "one message in so many goes through the byte codec", default=64
    )
    vector_clocks: bool = key(
        FLAG, "keep vector clocks, by which causality is judged", default=True
    )


def _read_version(value: Any, _spot: Spot) -> int:
    if value != VERSION or isinstance(value, bool):
        raise ValueError
    return VERSION


@attrs.frozen(kw_only=True)
class Scenario:
    """One file."""

    schema: int = key(Kind(f"{VERSION}, the version of this format", _read_version), "the version")
    name: str = key(LABEL, "the name, as the file's")
    about: str = key(TEXT, "what it is for, in a sentence", default="")
    base: str | None = key(
        LABEL, "another scenario beside this file: what is not said here is as there", default=None
    )
    engines: tuple[str, ...] = key(
        array_of(one_of(*vocabulary.ENGINES), least=1), "in which engines it runs", default=["heap"]
    )
    seeds: Seeds = key(table(Seeds), "the seeds", default={})
    cluster: ClusterSpec = key(table(ClusterSpec), "the cluster", default={})
    link: LinkSpec = key(table(LinkSpec), "the links", default={})
    clock: ClockSpec = key(table(ClockSpec), "the clocks", default={})
    producers: tuple[ProducerSpec, ...] = key(
        array_of(table(ProducerSpec)), "the producers", default=[], name="producer"
    )
    consumers: tuple[ConsumerSpec, ...] = key(
        array_of(table(ConsumerSpec)), "the consumers", default=[], name="consumer"
    )
    observers: tuple[ObserverSpec, ...] = key(
        array_of(table(ObserverSpec)), "the observers", default=[], name="observer"
    )
    faults: tuple[FaultSpec, ...] = key(
        array_of(table(FaultSpec, check_fault)), "the faults", default=[], name="fault"
    )
    swarm: SwarmSpec = key(table(SwarmSpec), "what a seed may leave out", default={})
    end: EndSpec = key(table(EndSpec), "the end", default={})
    expect: ExpectSpec = key(table(ExpectSpec), "what must be seen", default={})
    run: RunSpec = key(table(RunSpec), "the record", default={})


def families(scenario: Scenario) -> list[str]:
    """Every family that `swarm.families` may name."""
    named = [each.swarm_family for each in scenario.faults]
    named += [each.family for each in scenario.producers if each.family is not None]
    named += [each.family for each in scenario.consumers if each.family is not None]
    return list(dict.fromkeys([*named, *vocabulary.BUILT_IN_FAMILIES]))
