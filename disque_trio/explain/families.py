"""Families of faults for trials, and the clusters in which each is possible."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Final

import attrs

from disque_trio.explain.facts import Facts
from disque_trio.explain.job_request import JobRequest
from disque_trio.sim.scenarios.plan import Fault, Micros

SECOND: Final[Micros] = 1_000_000
MOST_NODES: Final = 7
"""The maximum number of nodes of a trial."""
REPAIR_S: Final = 5
"""replica-repair-after in trials."""
_BACK: Final = 5 * SECOND
"""The time until a killed node is started again."""
_CUT: Final = 20 * SECOND


@attrs.frozen
class Setting:
    """The settings of one trial."""

    request: JobRequest
    facts: Facts
    nodes: int
    """The number of nodes of the trial."""
    at: Micros
    """When the faults begin."""
    rng: random.Random

    def some(self, count: int) -> tuple[int, ...]:
        """Return this number of nodes, selected at random."""
        return tuple(sorted(self.rng.sample(range(1, self.nodes + 1), min(count, self.nodes))))


@attrs.frozen
class Family:
    """One kind of fault."""

    name: str
    title: str
    """The description for users."""
    faults: Callable[[Setting], tuple[Fault, ...]]
    lasts: Callable[[int], int] = lambda _nodes: 10
    """Seconds until the faults have ended, by the number of nodes."""
    applies: Callable[[JobRequest, Facts], bool] = lambda _asked, _facts: True
    ends_leases: bool = False
    """Is it a fault of workers, which stall or die while they have a job?"""


def size(facts: Facts) -> int:
    """Return the number of nodes of a trial in this cluster."""
    return min(facts.nodes, MOST_NODES)


def zones_of(facts: Facts) -> tuple[str, ...]:
    """Return the zone of each node of a trial. As many zones as possible have a node."""
    seen = Counter[str]()
    ranked = []
    for zone in facts.zones:
        ranked.append((seen[zone], zone))
        seen[zone] += 1
    return tuple(zone for _, zone in sorted(ranked)[: size(facts)])


def _zone_killed(setting: Setting) -> tuple[Fault, ...]:
    zones = zones_of(setting.facts)
    gone = setting.rng.choice(sorted(set(zones)))
    nodes = tuple(number for number, zone in enumerate(zones, 1) if zone == gone)
    return _killed(setting, nodes)


def _killed(setting: Setting, nodes: tuple[int, ...], mode: str = "kill") -> tuple[Fault, ...]:
    return (Fault(kind="crash", at=setting.at, hold=_BACK, nodes=nodes, mode=mode),)


def _all(setting: Setting) -> tuple[int, ...]:
    return tuple(range(1, setting.nodes + 1))


def _cut(setting: Setting, nodes: tuple[int, ...]) -> tuple[Fault, ...]:
    others = tuple(node for node in _all(setting) if node not in nodes)
    return (Fault(kind="partition", at=setting.at, hold=_CUT, groups=(nodes, others)),)


def _rolled(setting: Setting) -> tuple[Fault, ...]:
    return tuple(
        Fault(kind="restart", at=setting.at + place * _BACK, nodes=(node,), mode="stop")
        for place, node in enumerate(_all(setting))
    )


def repaired_after(nodes: int) -> int:
    """Return the seconds until the copies of a lost node are re-created (L7)."""
    return REPAIR_S + 80 + 15 * (nodes - 1)


def _one_by_one(setting: Setting) -> tuple[Fault, ...]:
    gone, *others = setting.rng.sample(_all(setting), setting.nodes)
    second = setting.at + repaired_after(setting.nodes) * SECOND
    killed = tuple(sorted(others[: setting.request.copies - 1]))
    return (
        Fault(kind="remove", at=setting.at, nodes=(gone,)),
        Fault(kind="crash", at=second, hold=_BACK, nodes=killed),
    )


def _can_repair(request: JobRequest, facts: Facts) -> bool:
    return 1 < request.copies < size(facts) and facts.repair_s > 0 and not facts.originals


FAMILIES: Final = (
    Family("calm", "nothing fails", lambda _: ()),
    Family("one-killed", "one node is killed", lambda s: _killed(s, s.some(1))),
    Family(
        "all-but-one-copy",
        "all but one of its nodes are killed at once",
        lambda s: _killed(s, s.some(s.request.copies - 1)),
        applies=lambda request, _: request.copies > 2,
    ),
    Family(
        "all-copies",
        "all nodes that hold it are killed at once",
        lambda s: _killed(s, s.some(s.request.copies)),
        applies=lambda request, _: request.copies > 1,
    ),
    Family(
        "zone-killed",
        "all nodes of one zone are killed at once",
        _zone_killed,
        applies=lambda _, facts: len(facts.zone_names) > 1,
    ),
    Family("power", "all nodes lose power", lambda s: _killed(s, _all(s), "power")),
    Family(
        "one-by-one",
        "one is lost and repaired, then others",
        _one_by_one,
        lasts=lambda nodes: repaired_after(nodes) + 10,
        applies=_can_repair,
    ),
    Family(
        "rolling",
        "the nodes are restarted in turn",
        _rolled,
        lasts=lambda nodes: 5 * nodes + 5,
    ),
    Family(
        "halves",
        "the network splits in halves",
        lambda s: _cut(s, s.some(s.nodes // 2)),
        lasts=lambda _nodes: 25,
        applies=lambda _, facts: facts.nodes > 3,
    ),
    Family(
        "cut-off",
        "one node is cut off",
        lambda s: _cut(s, s.some(1)),
        lasts=lambda _nodes: 25,
        applies=lambda _, facts: facts.nodes > 1,
    ),
    Family("worker-dies", "a worker dies with the job", lambda _: (), ends_leases=True),
    Family(
        "worker-slow",
        "a worker takes longer than RETRY",
        lambda _: (),
        applies=lambda request, _: request.retry > 0,
        ends_leases=True,
    ),
)
BY_NAME: Final = {family.name: family for family in FAMILIES}


def applying(request: JobRequest, facts: Facts) -> list[Family]:
    """Return the families that are possible with this job in this cluster."""
    return [family for family in FAMILIES if family.applies(request, facts)]
