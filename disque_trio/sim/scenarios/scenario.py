"""A scenario: a family of runs, written in TOML. A scenario and a seed determine one plan.

The records are the schema: each field is a key of its table, with its kind, meaning and default
(docs/scenario-keys.md lists them). `file.load` reads a file, `expand.expand` makes plans.
"""

from typing import Any, Final

import attrs

from disque_trio.sim.scenarios import vocabulary
from disque_trio.sim.scenarios.apps_spec import AppsSpec
from disque_trio.sim.scenarios.consumer_spec import FAMILY, START, ConsumerSpec, check_consumer
from disque_trio.sim.scenarios.fault_spec import FaultSpec, check_fault
from disque_trio.sim.scenarios.marks import MARKS
from disque_trio.sim.scenarios.ranges import Choice, Range
from disque_trio.sim.scenarios.schema import Kind, Spot, array_of, key, read_record, table
from disque_trio.sim.scenarios.value_types import (
    COPIES_OR_AUTO,
    DIRECTIVE_CHOICES,
    DIRECTIVES,
    DURATION,
    FLAG,
    KNOB_VALUES,
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
from disque_trio.statemachine.joboptions import CARRIED, Option

VERSION: Final = 1


@attrs.frozen(kw_only=True)
class Seeds:
    """The numbers of seeds of sweeps."""

    ci: int = key(count(1), "seeds of a quick sweep: 0 up to here", default=100)
    nightly: int = key(count(1), "seeds of a thorough sweep", default=10_000)


@attrs.frozen(kw_only=True)
class ClusterSpec:
    """The nodes."""

    nodes: Range = key(whole(1, 1000), "how many nodes", default=5)
    zones: Range = key(
        whole(0, 100),
        "in how many zones the nodes are (`replica-zone`); 0: they name none",
        default=0,
    )
    config: tuple[tuple[str, str], ...] = key(
        DIRECTIVES, "directives of every node, as in disque.conf", default={}
    )
    draw: tuple[tuple[str, tuple[str, ...]], ...] = key(
        DIRECTIVE_CHOICES,
        "directives of which each seed draws a value from an array; `default` leaves one out",
        default={},
    )
    aof: tuple[str, ...] = key(
        words_of(one_of("off", "no", "everysec", "always")),
        "`appendfsync` of the nodes' journals; `off`: no journals; one is drawn from an array",
        default="off",
    )
    sync: Range = key(DURATION, "how long a disk takes to sync", default="200us..5ms")
    knobs: tuple[tuple[str, int], ...] = key(
        KNOB_VALUES, "constants of the nodes, with their values, see below", default={}
    )
    small: Range = key(
        SHARE, "chance that a constant that `knobs` does not name is small in a seed", default=0
    )
    mixed: Range = key(
        SHARE,
        "chance that in a seed nodes have the capabilities of the original and of earlier "
        "versions; a restart may change them",
        default=0,
    )
    forming: str = key(
        one_of("known", "meet"),
        "`known`: nodes know each other from the start; `meet`: the first meets the others",
        default="known",
    )


@attrs.frozen(kw_only=True)
class LatencySpec:
    """The latency of messages."""

    fast: Range = key(DURATION, "latency of most messages; drawn for each", default="500us..2ms")
    slow: Range = key(DURATION, "latency of slow messages; drawn for each", default="100ms..2s")
    p_slow: Range = key(SHARE, "chance that a message is slow", default=0)
    scale: Range = key(RATE, "factor for all latencies, drawn once per run", default=1)


def _read_latency(value: Any, spot: Spot) -> LatencySpec:
    if isinstance(value, dict):
        return read_record(LatencySpec, value, spot)
    return LatencySpec(fast=DURATION.take(value, spot))


LATENCY: Final = Kind("a duration or range, or a table", _read_latency, LatencySpec)


@attrs.frozen(kw_only=True)
class LinkSpec:
    """The links between nodes. Probabilities apply only to the hostile model."""

    model: tuple[str, ...] = key(
        words_of(one_of("stream", "hostile")),
        "`stream` keeps order and loses only what was under way when a link breaks; `hostile` "
        "loses, duplicates and delays each message independently",
        default="stream",
    )
    latency: LatencySpec = key(LATENCY, "how long messages travel", default={})
    drop: Range = key(SHARE, "chance that a message is lost", default=0)
    duplicate: Range = key(SHARE, "chance that a message arrives twice", default=0)
    reorder: Range = key(SHARE, "chance that a message is overtaken", default=0)
    bandwidth: Range = key(SIZE, "bytes per second of a link; 0 is no limit", default=0)
    batches: Range = key(
        SHARE,
        "chance that in a seed messages that a node sends at the same moment arrive together, as "
        "one batch",
        default=0,
    )


@attrs.frozen(kw_only=True)
class ClockSpec:
    """The nodes' clocks, drawn for each node."""

    drift_ppm: Range = key(PPM, "how much faster than true time both clocks run", default=0)
    wall_offset: Range = key(
        SIGNED_MILLIS, "how far the wall clock is ahead of true time", default="0s"
    )


def _with_options(
    _record: type, fields: "list[attrs.Attribute[Any]]"
) -> "list[attrs.Attribute[Any]]":
    made = attrs.make_class("Options", {each.name: _option(each) for each in DRAWN}, kw_only=True)
    return [*fields, *attrs.fields(made)]


def _option(option: Option) -> Any:
    kind = whole(option.least, option.most)
    if option.is_time:
        kind = POSITIVE_SECONDS if option.least else SECONDS
    only = "; only with RETRY above 0" if option.needs_retry else ""
    return key(choice(kind), f"{option.text}{only}", default="default")


DRAWN: Final = [each for each in CARRIED if each.is_number and each.name != "keep"]
"""The options with a key each; every job has a value of each, or none."""


@attrs.frozen(kw_only=True, field_transformer=_with_options)
class JobSpec:
    """The jobs of producers; drawn for each job. The keys of `DRAWN` are added."""

    queue: tuple[str, ...] = key(QUEUES, "the queue, or several to choose from", default="q")
    body: Range = key(SIZE, "size of the body", default=16)
    timeout: Range = key(MILLIS, "how long ADDJOB may wait for copies", default="1s")
    replicate: Choice = key(
        choice(whole(1, 65535)), "REPLICATE; never more than there are nodes", default="default"
    )
    sync: Choice = key(
        choice(COPIES_OR_AUTO),
        "SYNC; never more than `replicate` or there are nodes; not with ASYNC",
        default="default",
    )
    delay: Choice = key(choice(SECONDS), "DELAY", default="default")
    retry: Choice = key(
        choice(SECONDS), "RETRY; `0s` means at most once, with a single copy", default="default"
    )
    ttl: Choice = key(choice(POSITIVE_SECONDS), "TTL", default="default")
    maxlen: Choice = key(choice(whole(1)), "MAXLEN", default="default")
    group: Range | None = key(
        whole(1),
        "GROUP; each job has one of so many groups, or none: as often as each of them",
        default=None,
    )
    unique: Range | None = key(
        whole(1), "UNIQUE; each job has one of so many keys of its queue", default=None
    )
    keep: Choice = key(choice(POSITIVE_SECONDS), "KEEP; only with `unique`", default="default")
    if_exists: tuple[str, ...] = key(
        words_of(one_of("default", "return", "reject", "again", "replace")),
        "IFEXISTS; only with `unique`; one is drawn from an array",
        default="default",
    )
    async_: Range = key(SHARE, "chance that a job is added with ASYNC", default=0, name="async")


_STOP: Final = "when it ends; by default at the end of the chaos"


@attrs.frozen(kw_only=True)
class ProducerSpec:
    """Producers that add jobs at a fixed rate, whether or not they get replies."""

    at: tuple[int, ...] | str = key(
        NODES,
        "one producer for each of these nodes; `random`: one producer that uses any node",
        default="all",
    )
    rate: Range = key(RATE, "jobs per second of each producer, drawn once per run")
    jobs: Range | None = key(whole(1), "how many jobs each adds at most", default=None)
    burst: Range = key(
        whole(1), "how many jobs are added at once; the rate stays the same", default=1
    )
    pipeline: Range = key(
        whole(1),
        "requests sent on one connection without waiting for replies; drawn for each",
        default=1,
    )
    dies: Range = key(
        SHARE,
        "chance, for each job, that the producer drops the connection with all open requests",
        default=0,
    )
    dies_after: Range = key(DURATION, "how long after sending that job", default="0ms..5ms")
    again: Range = key(
        whole(0),
        "how often a job is sent again, to the next node, when its connection ends without a reply",
        default=0,
    )
    start: Range = key(DURATION, START, default="0s")
    stop: Range | None = key(DURATION, _STOP, default=None)
    job: JobSpec = key(table(JobSpec), "the jobs", default={})
    family: str | None = key(LABEL, FAMILY, default=None)


@attrs.frozen(kw_only=True)
class ObserverSpec:
    """Clients that query nodes (QLEN, QPEEK, QSTAT, SHOW, QSCAN, JSCAN, INFO). The checker compares
    the replies with the rows (S22)."""

    count: Range = key(whole(1), "how many", default=1)
    every: Range = key(
        POSITIVE_DURATION,
        "how long each waits from one query to the next, at any node; drawn for each query",
        default="100ms..500ms",
    )
    share: Range = key(SHARE, "chance that a run has observers", default=1)


@attrs.frozen(kw_only=True)
class AdministratorSpec:
    """Clients that send administrative commands. The checker judges the effects (S23)."""

    count: Range = key(whole(1), "how many", default=1)
    every: Range = key(
        POSITIVE_DURATION,
        "how long each waits from one order to the next, at any node; drawn for each order",
        default="1s..5s",
    )
    orders: tuple[tuple[str, Range], ...] = key(
        weights(tuple(vocabulary.ORDERS)), "what they order", default={"wait": 1}
    )
    share: Range = key(SHARE, "chance that a run has administrators", default=1)


@attrs.frozen(kw_only=True)
class LimitSpec:
    """QUEUE LIMIT of queues, sent to a random node. Each queue has its own limits; a queue for
    which no limit is drawn has none. The checker judges them (S38, L15)."""

    queues: tuple[str, ...] = key(QUEUES, "the queues")
    share: Range = key(SHARE, "chance that a queue has limits in a seed", default=1)
    at: Range = key(DURATION, "when they are set", default="0s")
    concurrency: Choice = key(choice(whole(1)), "CONCURRENCY", default="default")
    rate: Choice = key(choice(whole(1)), "RATE", default="default")
    per: Choice = key(choice(POSITIVE_SECONDS), "PER; only with `rate`", default="default")
    burst: Choice = key(choice(whole(1)), "BURST; only with `rate`", default="default")
    loose: Range = key(SHARE, "chance of LOOSE", default=0)
    group_concurrency: Choice = key(choice(whole(1)), "GROUP-CONCURRENCY", default="default")
    group_rate: Choice = key(choice(whole(1)), "GROUP-RATE", default="default")
    group_per: Choice = key(
        choice(POSITIVE_SECONDS), "GROUP-PER; only with `group_rate`", default="default"
    )
    group_burst: Choice = key(
        choice(whole(1)), "GROUP-BURST; only with `group_rate`", default="default"
    )


@attrs.frozen(kw_only=True)
class SwarmSpec:
    """The features that a seed may leave out. A feature that is always on can mask the faults of
    others."""

    families: tuple[str, ...] | None = key(
        words_of(LABEL),
        "families of faults, producers and consumers that a seed may leave out, and built-in "
        "families, see below",
        default=None,
    )
    p: Range = key(SHARE, "chance that a run keeps a family", default=0.5)
    options: bool = key(FLAG, "options of ADDJOB are left out in the same way", default=False)
    default_retry: Range = key(
        SHARE,
        "chance that RETRY may be among these options: its default of 5 minutes outlasts the "
        "faults, so no job is queued again among them, and the run takes several times as long",
        default=1,
    )
    acks: bool = key(
        FLAG, "ways to end a job other than ACKJOB are left out in the same way", default=False
    )


@attrs.frozen(kw_only=True)
class EndSpec:
    """The end of a run."""

    chaos: Range = key(POSITIVE_DURATION, "when faults and adds end", default="60s")
    heal: tuple[str, ...] = key(
        words_of(one_of("full", "core")),
        "`full` heals all nodes, `core` only a majority; one is drawn from an array",
        default="full",
    )
    calm_loss: Range = key(
        SHARE,
        "chance that, once faults and adds have ended, one more node is lost for good, and nothing "
        "else happens until its copies must have been replaced; only then all is healed",
        default=0,
    )
    drain: Range | None = key(
        DURATION,
        "how long the run continues after the chaos; by default computed from the workload",
        default=None,
    )


@attrs.frozen(kw_only=True)
class ExpectSpec:
    """The expected results of every run."""

    lost: int = key(count(0), "how many jobs may be lost", default=0)
    must_lose: bool = key(FLAG, "a negative control: a run that loses no job fails", default=False)
    duplicates: tuple[str, ...] = key(
        array_of(one_of(*vocabulary.DUPLICATE_CAUSES, description="a cause, `D0` to `D13`")),
        "causes of duplicates that may occur",
        default=[],
    )
    sometimes: tuple[str, ...] = key(
        array_of(one_of(*MARKS, description="a mark")),
        "marks; each must be hit by at least one seed of a sweep",
        default=[],
    )


@attrs.frozen(kw_only=True)
class RunSpec:
    """The record of a run."""

    codec_every: int = key(
        count(1), "one in this many messages goes through the byte codec", default=64
    )
    vector_clocks: bool = key(
        FLAG, "keep vector clocks, which the checkers of causality need", default=True
    )


def _read_version(value: Any, _spot: Spot) -> int:
    if value != VERSION or isinstance(value, bool):
        raise ValueError
    return VERSION


@attrs.frozen(kw_only=True)
class Scenario:
    """One scenario file."""

    schema: int = key(Kind(f"{VERSION}, the version of this format", _read_version), "the version")
    name: str = key(LABEL, "the name; the same as that of the file")
    about: str = key(TEXT, "its purpose, in a sentence", default="")
    base: str | None = key(
        LABEL,
        "another scenario in the same folder, from which missing keys are taken",
        default=None,
    )
    engines: tuple[str, ...] = key(
        array_of(one_of(*vocabulary.ENGINES), least=1),
        "the engines that can run it",
        default=["heap"],
    )
    seeds: Seeds = key(table(Seeds), "the seeds", default={})
    cluster: ClusterSpec = key(table(ClusterSpec), "the cluster", default={})
    link: LinkSpec = key(table(LinkSpec), "the links", default={})
    clock: ClockSpec = key(table(ClockSpec), "the clocks", default={})
    producers: tuple[ProducerSpec, ...] = key(
        array_of(table(ProducerSpec)), "the producers", default=[], name="producer"
    )
    consumers: tuple[ConsumerSpec, ...] = key(
        array_of(table(ConsumerSpec, check_consumer)),
        "the consumers",
        default=[],
        name="consumer",
    )
    observers: tuple[ObserverSpec, ...] = key(
        array_of(table(ObserverSpec)), "the observers", default=[], name="observer"
    )
    administrators: tuple[AdministratorSpec, ...] = key(
        array_of(table(AdministratorSpec)), "the administrators", default=[], name="administrator"
    )
    limits: tuple[LimitSpec, ...] = key(
        array_of(table(LimitSpec)), "the limits of queues", default=[], name="limit"
    )
    apps: AppsSpec | None = key(table(AppsSpec), "an app of the library, if one runs", default=None)
    faults: tuple[FaultSpec, ...] = key(
        array_of(table(FaultSpec, check_fault)), "the faults", default=[], name="fault"
    )
    swarm: SwarmSpec = key(table(SwarmSpec), "what a seed may leave out", default={})
    end: EndSpec = key(table(EndSpec), "the end", default={})
    expect: ExpectSpec = key(table(ExpectSpec), "what must be seen", default={})
    run: RunSpec = key(table(RunSpec), "the record", default={})


def families(scenario: Scenario) -> list[str]:
    """Return every family that `swarm.families` may name."""
    named = [each.swarm_family for each in scenario.faults]
    named += [each.family for each in scenario.producers if each.family is not None]
    named += [each.family for each in scenario.consumers if each.family is not None]
    processes = () if scenario.apps is None else scenario.apps.faults
    named += [each.family for each in processes if each.family is not None]
    return list(dict.fromkeys([*named, *vocabulary.BUILT_IN_FAMILIES]))
