"""The consumers of a scenario, and which of their keys depend on each other."""

from typing import Final

import attrs

from disque_trio.sim.scenarios import vocabulary
from disque_trio.sim.scenarios.ranges import Range
from disque_trio.sim.scenarios.schema import Spot, key
from disque_trio.sim.scenarios.value_types import (
    DURATION,
    FLAG,
    LABEL,
    MILLIS,
    NODES,
    POSITIVE_DURATION,
    QUEUES,
    one_of,
    weights,
    whole,
)

START: Final = "when it begins"
FAMILY: Final = "its name in `swarm.families`"


@attrs.frozen(kw_only=True)
class ConsumerSpec:
    """Workers that take jobs, work on them, and end each in one of the ways of their mix."""

    at: tuple[int, ...] | str = key(
        NODES, "at which nodes; `random` draws one for each worker", default="all"
    )
    workers: Range = key(whole(1), "how many at each node", default=1)
    queues: tuple[str, ...] | None = key(
        QUEUES, "the queues that they read; by default all that producers write", default=None
    )
    reads: Range | None = key(
        whole(1), "how many of these queues a worker reads, drawn for each; by default all",
        default=None,
    )  # fmt: skip
    by_queue: bool = key(
        FLAG, "`workers` is the number for each queue; each worker reads one queue", default=False
    )
    kind: str = key(
        one_of("loop", "engine"),
        "`loop`: takes jobs, works on them one by one, asks again; `engine`: runs the worker "
        "library's engine, which stops in order after `visit`; `ack` says how its handlers end",
        default="loop",
    )
    count: Range = key(
        whole(1),
        "GETJOB's COUNT; of an engine, how many jobs run at the same time",
        default=1,
    )
    prefetch: Range = key(whole(0), "how many more jobs an engine holds for each queue", default=0)
    prefetch_window: Range = key(
        DURATION,
        "an engine holds no more jobs than end in this time, `prefetch` at most; 0 is `prefetch`",
        default="0s",
    )
    strict: bool = key(
        FLAG,
        "an engine runs its queues in their order, not in turn",
        default=False,
    )
    limit: Range = key(DURATION, "how long a job of an engine may run; 0 is for ever", default="0s")
    stall: Range = key(
        DURATION, "how long the process of an engine stops; only for `ack.stall`", default="0s"
    )
    poll: Range = key(MILLIS, "GETJOB's TIMEOUT; 0ms is NOHANG", default="1s")
    polls: Range | None = key(
        whole(1), "after how many GETJOBs it disconnects, drawn for each visit; by default never",
        default=None,
    )  # fmt: skip
    visit: Range | None = key(
        POSITIVE_DURATION,
        "after how long it disconnects, also while a GETJOB waits; by default never",
        default=None,
    )
    away: Range = key(DURATION, "how long until it connects again", default="1s..5s")
    roams: bool = key(
        FLAG, "it connects to a random node each time; after the chaos to its own", default=False
    )
    meta: bool = key(
        FLAG, "it asks WITHMETA, and sends tokens with WORKING, NACK and RELEASE", default=False
    )
    tied: bool = key(FLAG, "it asks TIED", default=False)
    held: bool = key(
        FLAG, "it asks HELD as well, and begins each job when it works on it", default=False
    )
    work: Range = key(DURATION, "how long a job takes; drawn for each", default="5ms..50ms")
    delay: Range = key(
        MILLIS, "DELAY of `nack-delay` and `release-delay`; drawn for each", default="1s..5s"
    )
    ack: tuple[tuple[str, Range], ...] = key(
        weights(tuple(vocabulary.WAYS)),
        "how a job ends after the work",
        default={"ackjob": 1},
    )
    start: Range = key(DURATION, START, default="0s")
    stop: Range | None = key(
        DURATION, "when it ends; by default at the end of the run", default=None
    )
    family: str | None = key(LABEL, FAMILY, default=None)


def check_consumer(spec: ConsumerSpec, spot: Spot) -> None:
    """Report keys that this kind of consumer does not support."""
    ways = [way for way, weight in spec.ack if weight.high]
    if spec.held and not spec.tied:
        spot.inside("held").wrong("held needs tied")
    if spec.kind == "loop":
        if "stall" in ways:
            spot.inside("ack").wrong("ack.stall is for consumers of the kind `engine`")
        return
    for way in [way for way in ways if way not in vocabulary.ENGINE_WAYS]:
        spot.inside("ack").wrong(f"ack.{way} is for consumers of the kind `loop`")
    if "none" in ways and not spec.limit.low:
        spot.inside("limit").wrong("ack.none lets an engine's job run until its limit: say one")
    if "stall" in ways and not spec.stall.low:
        spot.inside("stall").wrong("ack.stall needs to know for how long: say stall")
    if "bury" in ways and not spec.meta:
        spot.inside("ack").wrong("ack.bury of an engine needs meta")
