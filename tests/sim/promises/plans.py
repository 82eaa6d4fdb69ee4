"""For each option, directive and setting: a plan in which it makes a difference."""

from typing import Any, Final

import attrs

from disque_trio.sim.scenarios.plan import Administrator, Expect, Fault, Observer, Plan
from tests.sim.mutants.plans import limited
from tests.sim.mutants.plans.conditions import (
    SECOND,
    blackouts,
    jobs,
    plan,
    squeezed,
    workers,
)

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


ERRING: Final = attrs.evolve(
    given_back("nack", "nack-delay", "bury"),
    observers=(Observer(name="o1", every=(SECOND // 50, SECOND // 10), queues=("q",)),),
)


RESULTS: Final = attrs.evolve(
    given_back("result", "result-elsewhere"),
    observers=(Observer(name="o1", every=(SECOND // 50, SECOND // 10), queues=("q",)),),
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


def _configured(base: Plan, *pairs: tuple[str, str]) -> Plan:
    return attrs.evolve(base, config=(*base.config, *pairs))


SLOW_NODE: Final = Fault(kind="slow", nodes=(5,), amount=300)
"""Each batch keeps this node busy for 0.3 s."""


def waited(**wishes: Any) -> Plan:
    """Workers wait for jobs that do not come."""
    adds = jobs(3, every=5 * SECOND)
    return plan("waited", 1, 25, adds=adds, consumers=workers(ALL, **wishes), expect=ANY)


def stayed(**options: Any) -> Plan:
    """Jobs with few keys, which workers take late and keep for long."""
    adds = jobs(30, every=SECOND // 3, retry_s=20, unique="k", **options)
    consumers = workers((1,), start=3 * SECOND, work=(SECOND, 3 * SECOND), meta=True)
    return plan("stayed", 1, 20, adds=adds, consumers=consumers, expect=ANY)


def asked_for_ends() -> Plan:
    """Administrators wait for the ends of jobs that nobody takes."""
    adds = jobs(40, every=SECOND // 4, retry_s=60)
    admins = tuple(
        Administrator(
            name=f"a{n}", every=(SECOND // 5, SECOND), queues=("q",), mix=(("wait", 1.0),)
        )
        for n in range(6)
    )
    return plan("ends", 1, 20, adds=adds, consumers=(), administrators=admins, expect=ANY)


def restarted() -> Plan:
    """Many jobs come back from a journal, and an administrator queues some of them."""
    adds = jobs(80, every=SECOND // 20, nodes=(1, 2), replicate=1, retry_s=60)
    admin = Administrator(
        name="a", every=(SECOND // 5, SECOND // 2), queues=("q",), mix=(("enqueue", 1.0),)
    )
    crash = Fault(kind="crash", mode="kill", at=5 * SECOND, hold=SECOND, nodes=(1, 2))
    base = plan("restarted", 1, 15, adds=adds, administrators=(admin,), faults=(crash,), expect=ANY)
    return _configured(base, ("appendonly", "yes"))


def _slower(base: Plan) -> Plan:
    """The same number of jobs in twice the time."""
    slower = [attrs.evolve(each, per_s=2, group_per_s=2) for each in base.limits]
    return attrs.evolve(
        base,
        limits=tuple(
            attrs.evolve(
                each,
                per_s=each.per_s if each.rate else 1,
                group_per_s=each.group_per_s if each.group_rate else 1,
            )
            for each in slower
        ),
    )


OPTIONS: Final[dict[tuple[str, str], Plan]] = {
    ("addjob", "REPLICATE"): added(replicate=2),
    ("addjob", "DELAY"): added(delay_s=3),
    ("addjob", "RETRY"): given_back("none", "ackjob"),
    ("addjob", "TTL"): added(ttl_s=5, seconds=20),
    ("addjob", "MAXLEN"): _late(added(maxlen=2, replicate=1)),
    ("addjob", "PRIORITY"): added(priority=7),
    ("addjob", "GROUP"): added(group="g"),
    ("addjob", "LIMIT"): given_back("nack", limit=2),
    ("addjob", "UNIQUE"): _late(_keyed()),
    ("addjob", "KEEP"): _keyed(keep_s=5),
    ("addjob", "BACKOFF"): given_back("nack", "ackjob", backoff_s=2, retry_s=30, ttl_s=600),
    ("addjob", "MAXBACKOFF"): given_back(
        "nack", backoff_s=1, max_backoff_s=2, retry_s=30, ttl_s=600
    ),
    ("addjob", "SYNC"): added(replicate=5, sync=3, faults=(SLOW_NODE,)),
    ("addjob", "ASYNC"): added(replicate=5, is_async=True, faults=(SLOW_NODE,)),
    ("addjob", "IFEXISTS"): stayed(if_exists="reject"),
    ("getjob", "NOHANG"): waited(poll_ms=0),
    ("getjob", "TIMEOUT"): waited(poll_ms=500),
    ("getjob", "COUNT"): taken(count=5),
    ("getjob", "HELD"): attrs.evolve(
        taken(
            meta=True,
            tied=True,
            held=True,
            count=5,
            visit=(SECOND, 3 * SECOND),
            away=(SECOND, SECOND),
        )
    ),
    ("enqueue", "COUNT"): restarted(),
    ("ackjob", "RESULT"): RESULTS,
    ("ackjob", "KEEP"): RESULTS,
    ("waitjob", "WITHRESULT"): RESULTS,
    ("waitjob", "NOHANG"): asked_for_ends(),
    ("waitjob", "TIMEOUT"): asked_for_ends(),
    ("getjob", "WITHCOUNTERS"): taken(),
    ("getjob", "WITHMETA"): taken(meta=True),
    ("getjob", "TIED"): taken(meta=True, tied=True),
    ("nack", "DELAY"): given_back("nack-delay", "ackjob"),
    ("nack", "ERROR"): ERRING,
    ("nack", "DEAD"): given_back("bury", "ackjob"),
    ("release", "DELAY"): given_back("release-delay", "ackjob"),
    ("purge", "DEAD"): _late(given_back("bury", orders=("purge-dead",), retry_s=60)),
    ("purge", "BCAST"): _late(given_back("ackjob", orders=("purge",), retry_s=60)),
    ("redrive", "COUNT"): given_back("bury", orders=("redrive",)),
    ("pause", "BCAST"): added(faults=(PAUSED,)),
    ("queue", "CONCURRENCY"): limited.leased(1),
    ("queue", "RATE"): limited.rated(1),
    ("queue", "PER"): _slower(limited.rated(1)),
    ("queue", "LOOSE"): limited.loosely_rated(1),
    ("queue", "GROUP-CONCURRENCY"): limited.leased_by_groups(1),
    ("queue", "GROUP-RATE"): limited.rated_by_groups(1),
    ("queue", "GROUP-PER"): _slower(limited.rated_by_groups(1)),
}


DOWN: Final = Fault(kind="crash", mode="kill", at=5 * SECOND, hold=12 * SECOND, nodes=(5,))
GONE: Final = Fault(kind="remove", at=5 * SECOND, nodes=(5,))
_DIES: Final = taken(meta=True, tied=True)
DIRECTIVES: Final[dict[str, Plan]] = {
    "replica-zone": attrs.evolve(added(replicate=2), zones=("a", "b")),
    "maxmemory": attrs.evolve(squeezed(0), consumers=(), drain=SECOND),
    "maxmemory-policy": _configured(squeezed(0), ("maxmemory-policy", "noeviction")),
    "cluster-node-timeout": added(faults=(DOWN,)),
    "delivery-lease": _configured(
        attrs.evolve(taken(), adds=jobs(40, every=SECOND // 10, retry_s=4)),
        ("delivery-lease", "no"),
    ),
    "default-replicate": _configured(added(replicate=None), ("default-replicate", "2")),
    "default-sync": _configured(added(replicate=5, faults=(SLOW_NODE,)), ("default-sync", "3")),
    "appendonly": blackouts(0),
    "appendfsync": blackouts(0),
    "replica-repair-after": attrs.evolve(
        _configured(added(200, (GONE,), retry_s=90), ("replica-repair-after", "2")),
        consumers=(),
        drain=SECOND,
    ),
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
    "prefetch_window": engines(count=2, prefetch=40, prefetch_window=SECOND),
}
