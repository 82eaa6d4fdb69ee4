"""Expands a scenario and a seed to a plan: draws every range, and lists every item.

Each part has its own random stream: ``cfg`` for values of the whole run, ``swarm`` for omissions,
``strikes`` for the faults, ``adds/p1`` for the jobs of producer p1, ``extensions/p1`` and
``groups/p1`` for options that the original lacks, ``observers``, ``administrators`` and ``limits``.
So a change to one part of a scenario does not change the draws of the others.
"""

import random
from collections.abc import Iterator
from typing import Any

import attrs

from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios import apps_draw, fault_kinds, versions
from disque_trio.sim.scenarios.calm_loss import with_calm_loss
from disque_trio.sim.scenarios.consumer_spec import ConsumerSpec
from disque_trio.sim.scenarios.fault_schedule import occurrences
from disque_trio.sim.scenarios.fault_spec import FaultSpec
from disque_trio.sim.scenarios.knobs import knob_values
from disque_trio.sim.scenarios.plan import (
    Add,
    Administrator,
    ClockPlan,
    Consumer,
    Expect,
    Latency,
    Limit,
    LinkPlan,
    Micros,
    Observer,
    Plan,
)
from disque_trio.sim.scenarios.ranges import Range
from disque_trio.sim.scenarios.scenario import (
    DRAWN,
    ClockSpec,
    JobSpec,
    LinkSpec,
    ProducerSpec,
    Scenario,
)
from disque_trio.sim.scenarios.swarm import thinned
from disque_trio.sim.scenarios.value_types import SECOND
from disque_trio.statemachine.joboptions import BY_WORD


def expand(scenario: Scenario, seed: int) -> Plan:
    """Return the plan of this seed."""
    scenario = thinned(scenario, stream(seed, "swarm"))
    cfg = stream(seed, "cfg")
    nodes = scenario.cluster.nodes.draw_int(cfg)
    chaos = scenario.end.chaos.draw_int(cfg)
    link = attrs.evolve(
        _link(scenario.link, cfg), batches=_happens(scenario.link.batches, stream(seed, "batches"))
    )
    clocks = tuple(_clock(scenario.clock, cfg) for _ in range(nodes))
    adds = _adds(scenario, nodes, chaos, seed, cfg)
    zones = _zones(scenario.cluster.zones, nodes, stream(seed, "zones"))
    journal = _journal(scenario, seed)
    faults = [each for each in scenario.faults if _fits(each, scenario, has_journal=bool(journal))]
    plan = Plan(
        scenario=scenario.name,
        seed=seed,
        nodes=nodes,
        link=link,
        clocks=clocks if any(clock != ClockPlan() for clock in clocks) else (),
        config=(*scenario.cluster.config, *journal, *_drawn(scenario, seed)),
        zones=zones,
        adds=adds,
        consumers=_consumers(scenario, nodes, cfg),
        observers=_observers(scenario, stream(seed, "observers")),
        administrators=_administrators(scenario, stream(seed, "administrators")),
        limits=_limits(scenario, nodes, stream(seed, "limits")),
        apps=None if scenario.apps is None else apps_draw.draw(scenario.apps, seed, nodes, chaos),
        faults=occurrences(faults, nodes, zones, chaos, stream(seed, "strikes")),
        chaos=chaos,
        heal=_one_of(scenario.end.heal, cfg),
        drain=0 if scenario.end.drain is None else scenario.end.drain.draw_int(cfg),
        versions=versions.draw(scenario.cluster.mixed, seed, nodes, has_journal=bool(journal)),
        forming=scenario.cluster.forming,
        knobs=knob_values(scenario.cluster, seed),
        sync=(int(scenario.cluster.sync.low), int(scenario.cluster.sync.high)),
        codec_every=scenario.run.codec_every,
        vector_clocks=scenario.run.vector_clocks,
        expect=Expect(
            lost=scenario.expect.lost,
            must_lose=scenario.expect.must_lose,
            duplicates=scenario.expect.duplicates,
            sometimes=scenario.expect.sometimes,
        ),
    )
    lost = stream(seed, "calm-loss")
    return with_calm_loss(plan, lost) if _happens(scenario.end.calm_loss, lost) else plan


def _zones(count: Range, nodes: int, rng: random.Random) -> tuple[str, ...]:
    """Return a zone for each node. Every zone has a node if there are enough nodes."""
    zones = count.draw_int(rng)
    if not zones:
        return ()
    drawn = [*range(1, min(zones, nodes) + 1)]
    drawn += [rng.randint(1, zones) for _ in range(nodes - len(drawn))]
    rng.shuffle(drawn)
    return tuple(f"z{zone}" for zone in drawn)


def _journal(scenario: Scenario, seed: int) -> tuple[tuple[str, str], ...]:
    """Return the directives of the journal, drawn from an own stream, so that journals change no
    other draw."""
    policy = _one_of(scenario.cluster.aof, stream(seed, "aof"))
    return () if policy == "off" else (("appendonly", "yes"), ("appendfsync", policy))


def _fits(fault: FaultSpec, scenario: Scenario, *, has_journal: bool) -> bool:
    """Does the fault fit? If seeds draw whether there are journals, disks fail only in seeds with
    journals. In these, wall clocks neither stop nor jump: a node measures loaded times by its wall
    clock, and not all checkers follow that (S2 and S6 do not)."""
    if "off" not in scenario.cluster.aof or len(scenario.cluster.aof) == 1:
        return True
    return fault_kinds.BY_NAME[fault.kind].part != ("wall clock" if has_journal else "disk")


def _drawn(scenario: Scenario, seed: int) -> list[tuple[str, str]]:
    """Return drawn directives. Each directive has a stream of its own."""
    drawn = [
        (name, stream(seed, "directive", name).choice(words))
        for name, words in scenario.cluster.draw
    ]
    return [(name, word) for name, word in drawn if word != "default"]


def _one_of(options: tuple[str, ...], rng: random.Random) -> str:
    return options[0] if len(options) == 1 else rng.choice(options)


def _link(spec: LinkSpec, cfg: random.Random) -> LinkPlan:
    scale = spec.latency.scale.draw(cfg)
    return LinkPlan(
        model=_one_of(spec.model, cfg),
        latency=Latency(
            fast=_scaled(spec.latency.fast, scale),
            slow=_scaled(spec.latency.slow, scale),
            p_slow=spec.latency.p_slow.draw(cfg),
        ),
        drop=spec.drop.draw(cfg),
        duplicate=spec.duplicate.draw(cfg),
        reorder=spec.reorder.draw(cfg),
        bytes_per_second=spec.bandwidth.draw_int(cfg),
    )


def _scaled(span: Range, scale: float) -> tuple[Micros, Micros]:
    return round(span.low * scale), round(span.high * scale)


def _clock(spec: ClockSpec, cfg: random.Random) -> ClockPlan:
    return ClockPlan(
        drift_ppm=spec.drift_ppm.draw_int(cfg), wall_offset_ms=spec.wall_offset.draw_int(cfg)
    )


# Producers.


def _adds(
    scenario: Scenario, nodes: int, chaos: Micros, seed: int, cfg: random.Random
) -> tuple[Add, ...]:
    adds: list[Add] = []
    number = 0
    for spec in scenario.producers:
        rate = spec.rate.draw(cfg)
        for node in _places(spec.at, nodes, default=0):
            number += 1
            name = f"p{number}"
            streams = [stream(seed, part, name) for part in ("adds", "extensions", "groups")]
            run = _Run(nodes, chaos, *streams)
            adds += _of_producer(name, spec, rate, node, run)
    return tuple(sorted(adds, key=lambda add: add.at))


def _places(at: tuple[int, ...] | str, nodes: int, *, default: int) -> tuple[int, ...]:
    """Return the nodes; `default` stands for a random one."""
    if isinstance(at, tuple):
        return at
    return tuple(range(1, nodes + 1)) if at == "all" else (default,)


@attrs.frozen
class _Run:
    nodes: int
    chaos: Micros
    rng: random.Random
    extensions: random.Random
    """The stream for options that the original lacks, so that they change no other draw."""
    groups: random.Random


def _of_producer(name: str, spec: ProducerSpec, rate: float, node: int, run: _Run) -> Iterator[Add]:
    """Yield all adds of one producer. Node 0 is a random one for each."""
    most = None if spec.jobs is None else spec.jobs.draw_int(run.rng)
    count = 0
    for at in _arrivals(spec, rate, run):
        for _ in range(spec.burst.draw_int(run.rng)):
            if count == most:
                return
            count += 1
            whom = node or run.rng.randint(1, run.nodes)
            yield _add(spec, f"{name}-{count}", name, whom, at, run)


def _arrivals(spec: ProducerSpec, rate: float, run: _Run) -> Iterator[Micros]:
    """Yield the times of bursts. Gaps are uniform from 0 to twice the mean, which needs no
    logarithm."""
    mean = (spec.burst.low + spec.burst.high) / 2 / rate * SECOND
    at = spec.start.draw_int(run.rng)
    stop = run.chaos if spec.stop is None else min(spec.stop.draw_int(run.rng), run.chaos)
    while (at := at + 1 + int(2 * mean * run.rng.random())) < stop:
        yield at


def _add(spec: ProducerSpec, body: str, producer: str, node: int, at: Micros, run: _Run) -> Add:
    job, rng = spec.job, run.rng
    retry_s = job.retry.draw_int(rng)
    copies = job.replicate.draw_int(rng)
    replicate = 1 if retry_s == 0 else None if copies is None else min(copies, run.nodes)
    sync = job.sync.draw_int(run.extensions)
    add = Add(
        at=at,
        node=node,
        producer=producer,
        queue=_one_of(job.queue, rng),
        body=body,
        size=job.body.draw_int(rng),
        timeout_ms=job.timeout.draw_int(rng),
        # ADDJOB with RETRY 0 and more than one copy is an error.
        replicate=replicate,
        sync=None if sync is None else min(sync, replicate or run.nodes),
        delay_s=job.delay.draw_int(rng),
        retry_s=retry_s,
        ttl_s=job.ttl.draw_int(rng),
        maxlen=job.maxlen.draw_int(rng),
        is_async=job.async_.high > 0 and rng.random() < job.async_.draw(rng),
        **_carried(job, retry_s, run.extensions),
        pipeline=spec.pipeline.draw_int(rng),
        dies_after=spec.dies_after.draw_int(rng) if _happens(spec.dies, rng) else None,
        again=spec.again.draw_int(rng),
        **({} if job.unique is None else _key(job, job.unique, rng)),
        group=None if job.group is None else _group(job.group, run.groups),
    )
    return attrs.evolve(add, sync=None) if add.is_async else add


def _carried(job: JobSpec, retry_s: int | None, rng: random.Random) -> dict[str, Any]:
    """Return the options that are extensions, except those of keys."""
    found: dict[str, Any] = {}
    for option in DRAWN:
        # Existing plans depend on this: with RETRY 0 no LIMIT is drawn.
        if retry_s != 0 or option.name != "limit":
            found[option.name] = getattr(job, option.name).draw_int(rng)
    for option in DRAWN:
        least = found.get(BY_WORD[option.needs].name) if option.needs else None
        if (option.needs and least is None) or (option.needs_retry and retry_s == 0):
            found[option.name] = None
        elif least is not None and found[option.name] is not None:
            found[option.name] = max(found[option.name], least)
    return {option.planned: found[option.name] for option in DRAWN}


def _key(job: JobSpec, keys: Range, rng: random.Random) -> dict[str, Any]:
    way = _one_of(job.if_exists, rng)
    return {
        "unique": f"k{rng.randint(1, keys.draw_int(rng))}",
        "keep_s": job.keep.draw_int(rng),
        "if_exists": None if way == "default" else way,
    }


def _group(groups: Range, rng: random.Random) -> str | None:
    number = rng.randint(0, groups.draw_int(rng))
    return f"g{number}" if number else None


def _happens(share: Range, rng: random.Random) -> bool:
    return share.high > 0 and rng.random() < share.draw(rng)


# Consumers.


def _consumers(scenario: Scenario, nodes: int, cfg: random.Random) -> tuple[Consumer, ...]:
    written = dict.fromkeys(queue for spec in scenario.producers for queue in spec.job.queue)
    found: list[Consumer] = []
    for spec in scenario.consumers:
        queues = spec.queues or tuple(written)
        for place in _places(spec.at, nodes, default=0):
            for choice in [(queue,) for queue in queues] if spec.by_queue else [queues]:
                for _ in range(spec.workers.draw_int(cfg)):
                    node = place or cfg.randint(1, nodes)
                    read = _some_of(choice, spec.reads, cfg)
                    found.append(_consumer(spec, f"c{len(found) + 1}", node, read, cfg))
    return tuple(found)


def _some_of(queues: tuple[str, ...], reads: Range | None, cfg: random.Random) -> tuple[str, ...]:
    if reads is None:
        return queues
    return tuple(cfg.sample(queues, min(reads.draw_int(cfg), len(queues))))


def _consumer(
    spec: ConsumerSpec, name: str, node: int, queues: tuple[str, ...], cfg: random.Random
) -> Consumer:
    return Consumer(
        name=name,
        node=node,
        queues=queues,
        kind=spec.kind,
        count=spec.count.draw_int(cfg),
        prefetch=spec.prefetch.draw_int(cfg),
        prefetch_window=spec.prefetch_window.draw_int(cfg),
        strict=spec.strict,
        limit=spec.limit.draw_int(cfg),
        stall=spec.stall.span,
        poll_ms=spec.poll.draw_int(cfg),
        polls=(0, 0) if spec.polls is None else spec.polls.span,
        visit=(0, 0) if spec.visit is None else spec.visit.span,
        away=(0, 0) if spec.polls is None and spec.visit is None else spec.away.span,
        roams=spec.roams,
        meta=spec.meta,
        tied=spec.tied,
        held=spec.held,
        work=spec.work.span,
        delay_ms=spec.delay.span,
        mix=tuple((way, weight.draw(cfg)) for way, weight in spec.ack),
        start=spec.start.draw_int(cfg),
        stop=0 if spec.stop is None else spec.stop.draw_int(cfg),
    )


# Administrators.


def _administrators(scenario: Scenario, rng: random.Random) -> tuple[Administrator, ...]:
    queues = tuple(dict.fromkeys(queue for spec in scenario.producers for queue in spec.job.queue))
    found: list[Administrator] = []
    for spec in scenario.administrators:
        count = spec.count.draw_int(rng) if rng.random() < spec.share.draw(rng) else 0
        for _ in range(count):
            mix = tuple((order, weight.draw(rng)) for order, weight in spec.orders)
            name = f"a{len(found) + 1}"
            found.append(Administrator(name=name, every=spec.every.span, queues=queues, mix=mix))
    return tuple(found)


# Limits.


def _limits(scenario: Scenario, nodes: int, rng: random.Random) -> tuple[Limit, ...]:
    drawn = [
        Limit(
            at=spec.at.draw_int(rng),
            node=rng.randint(1, nodes),
            queue=queue,
            concurrency=spec.concurrency.draw_int(rng) or 0,
            rate=(rate := spec.rate.draw_int(rng) or 0),
            per_s=(spec.per.draw_int(rng) or 1) if rate else 1,
            burst=(spec.burst.draw_int(rng) or 0) if rate else 0,
            is_loose=_happens(spec.loose, rng),
            group_concurrency=spec.group_concurrency.draw_int(rng) or 0,
            group_rate=(of_group := spec.group_rate.draw_int(rng) or 0),
            group_per_s=(spec.group_per.draw_int(rng) or 1) if of_group else 1,
            group_burst=(spec.group_burst.draw_int(rng) or 0) if of_group else 0,
        )
        for spec in scenario.limits
        for queue in spec.queues
        if _happens(spec.share, rng)
    ]
    return tuple(
        each
        for each in drawn
        if each.concurrency or each.rate or each.group_concurrency or each.group_rate
    )


# Observers.


def _observers(scenario: Scenario, rng: random.Random) -> tuple[Observer, ...]:
    queues = tuple(dict.fromkeys(queue for spec in scenario.producers for queue in spec.job.queue))
    counts = [
        spec.count.draw_int(rng) if rng.random() < spec.share.draw(rng) else 0
        for spec in scenario.observers
    ]
    spans = [
        spec.every.span
        for spec, count in zip(scenario.observers, counts, strict=True)
        for _ in range(count)
    ]
    return tuple(
        Observer(name=f"o{number}", every=span, queues=queues)
        for number, span in enumerate(spans, 1)
    )
