"""The `[apps]` table of a scenario: the app, and the faults of its processes."""

import attrs

from disque_trio.sim.scenarios.apps import APP_FAULTS, HANDLER_ACTIONS, POLICIES
from disque_trio.sim.scenarios.ranges import Range
from disque_trio.sim.scenarios.schema import array_of, key, table
from disque_trio.sim.scenarios.value_types import (
    DURATION,
    LABEL,
    POSITIVE_DURATION,
    RATE,
    SHARE,
    one_of,
    weights,
    whole,
    words_of,
)

_CALLS = ("single", "many", "chain", "batch", "then", "flow")
_EXECUTORS = ("loop", "thread", "process")
_CONFLICTS = ("return", "reject", "again", "replace")


@attrs.frozen(kw_only=True)
class AppFaultSpec:
    """One `[[apps.fault]]`: a fault of workers or producers."""

    kind: str = key(one_of(*APP_FAULTS, description="a fault of processes"), "what happens")
    family: str | None = key(LABEL, "its name in `swarm.families`; by default none", default=None)
    whom: str = key(
        one_of("worker", "producer", "any"), "which processes; one is drawn", default="worker"
    )
    every: Range = key(POSITIVE_DURATION, "the time from one occurrence to the next")
    hold: Range = key(DURATION, "how long it lasts", default="0s")


@attrs.frozen(kw_only=True)
class AppsSpec:
    """An app of the library, with producers and workers; drawn for each seed."""

    producers: Range = key(whole(1, 99), "processes that add jobs", default="1..2")
    workers: Range = key(whole(1, 99), "processes that run them", default="1..3")
    concurrency: Range = key(whole(1), "handlers of a worker at a time", default="1..8")
    prefetch: Range = key(whole(0), "jobs that it holds besides, of each queue", default="0..3")
    tasks: Range = key(whole(1, 99), "how many tasks are declared", default="3..6")
    queues: Range = key(whole(1, 99), "in how many queues", default="1..3")
    consumers: Range = key(whole(0, 99), "queues that have a consumer", default="0..1")
    crons: Range = key(whole(0, 99), "tasks that are due by the clock", default=0)
    rate: Range = key(RATE, "calls per second of each producer", default="0.3..1.5 log")
    calls: tuple[tuple[str, Range], ...] = key(
        weights(_CALLS),
        "what producers do: `single`, `many` (`enqueue_many`), `chain`, `batch`, `then` (a batch "
        "with `then`), `flow`",
        default={"single": 1},
    )
    actions: tuple[tuple[str, Range], ...] = key(
        weights(tuple(HANDLER_ACTIONS)),
        "how handlers behave in a run",
        default={"return": 1},
        former="deeds",
    )
    calm: Range = key(SHARE, "chance that a job only returns", default=0.5)
    runs: Range = key(whole(1, 99), "in how many runs a job may do something else", default="1..3")
    work: Range = key(DURATION, "how long a run works", default="1ms..2s")
    policies: tuple[str, ...] = key(
        words_of(one_of(*POLICIES)), "kinds of `retry=`; one is drawn for each task",
        default="fixed",
    )  # fmt: skip
    attempts: Range = key(whole(1, 99), "attempts of a task", default="1..4")
    wait: Range = key(DURATION, "the first wait of a policy", default="200ms..4s")
    executors: tuple[str, ...] = key(
        words_of(one_of(*_EXECUTORS)), "where a task runs; one is drawn for each", default="loop"
    )
    limited: Range = key(SHARE, "chance that a task has a time limit, of 1 to 5 s", default=0)
    lease: Range = key(whole(3, 600), "leases in seconds, drawn for each task", default="4..20")
    unique: Range = key(SHARE, "chance that jobs of a task have keys", default=0)
    conflicts: tuple[str, ...] = key(
        words_of(one_of(*_CONFLICTS)), "`on_conflict` of such a task", default="return"
    )
    results: Range = key(SHARE, "chance that a task sends results", default=0)
    delayed: Range = key(SHARE, "chance that a job has a delay, of up to 5 s", default=0)
    faults: tuple[AppFaultSpec, ...] = key(
        array_of(table(AppFaultSpec)), "what befalls processes", default=[], name="fault"
    )
