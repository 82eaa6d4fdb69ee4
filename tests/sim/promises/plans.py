"""For each option, directive and setting: a plan in which it makes a difference."""

from typing import Any, Final

import attrs

from disque_trio.sim.scenarios.plan import Administrator, Expect, Fault, Plan
from tests.sim.mutants.plans.conditions import SECOND, jobs, plan, workers

ALL: Final = (1, 2, 3, 4, 5)
ANY: Final = Expect(duplicates=("D0", "D1", "D2", "D4", "D5"))


def added(seconds: int = 15, faults: tuple[Fault, ...] = (), **options: Any) -> Plan:
    """Jobs with these options, which workers take at once."""
    adds = jobs(24, every=SECOND // 3, **options)
    return plan("added", 1, seconds, adds=adds, consumers=workers(ALL), faults=faults, expect=ANY)


def given_back(*ways: str, seconds: int = 20, orders: tuple[str, ...] = (), **options: Any) -> Plan:
    """Workers end jobs in these ways."""
    adds = jobs(30, every=SECOND // 4, **{"retry_s": 3, **options})
    mix = tuple((way, 1.0) for way in ways)
    consumers = workers(ALL, mix=mix, work=(5_000, SECOND // 2), meta=True)
    admins = tuple(
        Administrator(name=f"a{n}", every=(SECOND // 5, SECOND), queues=("q",), mix=((o, 1.0),))
        for n, o in enumerate(orders)
    )
    return plan(
        "given-back", 1, seconds, adds=adds, consumers=consumers, administrators=admins, expect=ANY
    )


def taken(**wishes: Any) -> Plan:
    """Many jobs wait for workers with these wishes."""
    adds = jobs(60, every=SECOND // 20, retry_s=5)
    mix = (("ackjob", 3.0), ("none", 1.0), ("die", 1.0))
    consumers = workers(ALL, mix=mix, work=(5_000, SECOND), start=4 * SECOND, **wishes)
    return plan("taken", 1, 20, adds=adds, consumers=consumers, expect=ANY)


PAUSED: Final = Fault(
    kind="pause-queue", at=SECOND, hold=6 * SECOND, nodes=(1,), queue="q", mode="bcast"
)


def _keyed(**options: Any) -> Plan:
    return given_back("ackjob", unique="k", **options)


def _late(base: Plan) -> Plan:
    late = tuple(attrs.evolve(each, start=9 * SECOND) for each in base.consumers)
    return attrs.evolve(base, consumers=late)


OPTIONS: Final[dict[tuple[str, str], Plan]] = {
    ("addjob", "REPLICATE"): added(replicate=2),
    ("addjob", "DELAY"): added(delay_s=3),
    ("addjob", "RETRY"): given_back("none", "ackjob"),
    ("addjob", "TTL"): added(ttl_s=5, seconds=20),
    ("addjob", "MAXLEN"): _late(added(maxlen=2, replicate=1)),
    ("addjob", "PRIORITY"): added(priority=7),
    ("addjob", "LIMIT"): given_back("nack", limit=2),
    ("addjob", "UNIQUE"): _late(_keyed()),
    ("addjob", "KEEP"): _keyed(keep_s=5),
    ("addjob", "BACKOFF"): given_back("nack", "ackjob", backoff_s=2, retry_s=30, ttl_s=600),
    ("addjob", "MAXBACKOFF"): given_back(
        "nack", backoff_s=1, max_backoff_s=2, retry_s=30, ttl_s=600
    ),
    ("getjob", "WITHCOUNTERS"): taken(),
    ("getjob", "WITHMETA"): taken(meta=True),
    ("getjob", "TIED"): taken(meta=True, tied=True),
    ("nack", "DELAY"): given_back("nack-delay", "ackjob"),
    ("nack", "DEAD"): given_back("bury", "ackjob"),
    ("release", "DELAY"): given_back("release-delay", "ackjob"),
    ("purge", "DEAD"): _late(given_back("bury", orders=("purge-dead",), retry_s=60)),
    ("purge", "BCAST"): _late(given_back("ackjob", orders=("purge",), retry_s=60)),
    ("redrive", "COUNT"): given_back("bury", orders=("redrive",)),
    ("pause", "BCAST"): added(faults=(PAUSED,)),
}


def _configured(base: Plan, *pairs: tuple[str, str]) -> Plan:
    return attrs.evolve(base, config=(*base.config, *pairs))


_DIES: Final = taken(meta=True, tied=True)
DIRECTIVES: Final[dict[str, Plan]] = {
    "dead-letter-ttl": _configured(given_back("bury"), ("dead-letter-ttl", "5")),
    "tied-grace": _configured(_DIES, ("tied-grace", "3000")),
}
"""The directive has this value in the plan, and its default in the nodes that ignore it."""


def engines(**settings: Any) -> Plan:
    """Workers of the worker library, with many jobs."""
    adds = jobs(80, every=SECOND // 20, retry_s=10)
    adds = tuple(attrs.evolve(add, queue="qr"[n % 2]) for n, add in enumerate(adds))
    consumers = tuple(
        attrs.evolve(each, kind="engine", queues=("q", "r"), **settings)
        for each in workers((1, 2), work=(SECOND // 5, SECOND))
    )
    return plan("engines", 1, 30, adds=adds, consumers=consumers, expect=ANY)


SETTINGS: Final[dict[str, Plan]] = {
    "strict": engines(count=2, prefetch=4, strict=True),
    "horizon": engines(count=2, prefetch=40, horizon=SECOND),
}
