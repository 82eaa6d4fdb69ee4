"""Swarm testing: each seed leaves out a random part of a scenario's features and faults.

A feature that is always on masks others: a cluster that is always partitioned never shows the
effect of slow consumers alone. The draws have their own stream, so that a new family does not
change the draws within the others.
"""

import random
from collections.abc import Sequence
from typing import Any, Final

import attrs

from disque_trio.sim.scenarios.apps_spec import AppsSpec
from disque_trio.sim.scenarios.ranges import DEFAULT, Range, fixed
from disque_trio.sim.scenarios.scenario import JobSpec, LinkSpec, Scenario

_OF_LINK: Final = {
    "loss": "drop",
    "duplication": "duplicate",
    "reordering": "reorder",
    "bandwidth": "bandwidth",
}
_OF_CLOCK: Final = {"drift": "drift_ppm", "wall-offset": "wall_offset"}
_OPTIONS: Final = ("replicate", "delay", "retry", "ttl", "maxlen")
_EXTENSIONS: Final = ("priority", "backoff")
"""Options that are left out in the same way, but drawn only if a scenario has them."""


def thinned(scenario: Scenario, rng: random.Random) -> Scenario:
    """Return the scenario without the features that this seed leaves out."""
    swarm = scenario.swarm
    p = swarm.p.draw(rng)
    out = [family for family in swarm.families or () if rng.random() >= p]
    producers = [each for each in scenario.producers if each.family not in out]
    consumers = [each for each in scenario.consumers if each.family not in out]
    if swarm.options:
        default_retry = swarm.default_retry.draw(rng)
        keeps_retry = default_retry < 1 and rng.random() >= default_retry
        options = [each for each in _OPTIONS if each != "retry" or not keeps_retry]
        producers = [
            attrs.evolve(each, job=_plainer(each.job, options, p, rng)) for each in producers
        ]
    if swarm.acks:
        consumers = [attrs.evolve(each, ack=_fewer(each.ack, p, rng)) for each in consumers]
    return attrs.evolve(
        scenario,
        producers=tuple(producers),
        consumers=tuple(consumers),
        faults=tuple(each for each in scenario.faults if each.swarm_family not in out),
        apps=None if scenario.apps is None else _safer(scenario.apps, out),
        link=_quieter(scenario.link, out),
        clock=attrs.evolve(scenario.clock, **_zeros(_OF_CLOCK, out)),
    )


def _safer(apps: AppsSpec, out: Sequence[str]) -> AppsSpec:
    return attrs.evolve(apps, faults=tuple(each for each in apps.faults if each.family not in out))


def _zeros(fields: dict[str, str], out: Sequence[str]) -> dict[str, Any]:
    return {field: fixed(0) for family, field in fields.items() if family in out}


def _quieter(link: LinkSpec, out: Sequence[str]) -> LinkSpec:
    link = attrs.evolve(link, **_zeros(_OF_LINK, out))
    if "slow-tail" in out:
        return attrs.evolve(link, latency=attrs.evolve(link.latency, p_slow=fixed(0)))
    return link


def _plainer(job: JobSpec, options: Sequence[str], p: float, rng: random.Random) -> JobSpec:
    """Return the job without some of these options of ADDJOB, and of the extensions."""
    left_out: dict[str, Any] = {name: DEFAULT for name in options if rng.random() >= p}
    for name in _EXTENSIONS:
        if getattr(job, name) != DEFAULT and rng.random() >= p:
            left_out[name] = DEFAULT
    if rng.random() >= p:
        left_out["async_"] = fixed(0)
    if job.group is not None and rng.random() >= p:
        left_out["group"] = None
    return attrs.evolve(job, **left_out)


def _fewer(
    ack: tuple[tuple[str, Range], ...], p: float, rng: random.Random
) -> tuple[tuple[str, Range], ...]:
    """Return the ways to end a job without some of them; ACKJOB stays."""
    kept = [(way, weight) for way, weight in ack if way == "ackjob" or rng.random() < p]
    return tuple(kept) or ack
