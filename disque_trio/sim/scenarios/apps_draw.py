"""Draws the app of a plan from the `[apps]` table and a seed.

Streams: ``apps/shape`` for processes and tasks, ``apps/calls/p1`` for the calls of a producer,
``apps/faults`` for the faults of processes.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.apps import (
    AppCall,
    AppCron,
    AppFault,
    AppJob,
    AppsPlan,
    AppTask,
    HandlerAction,
    Micros,
)
from disque_trio.sim.scenarios.apps_spec import AppFaultSpec, AppsSpec
from disque_trio.sim.scenarios.ranges import Range

_SECOND: Final = 1_000_000
_PLAIN: Final = ("return", "error", "snooze", "late")
_WEIGHTED = tuple[tuple[str, float], ...]


def draw(spec: AppsSpec, seed: int, nodes: int, chaos: Micros) -> AppsPlan:
    """Return the app of this seed."""
    rng = stream(seed, "apps", "shape")
    workers, producers = spec.workers.draw_int(rng), spec.producers.draw_int(rng)
    concurrency, prefetch = spec.concurrency.draw_int(rng), spec.prefetch.draw_int(rng)
    tasks = tuple(_tasks(spec, rng))
    crons = tuple(
        AppCron(task=f"tick{number}", every_s=rng.randint(3, 15))
        for number in range(1, spec.crons.draw_int(rng) + 1)
    )
    actions = _kept(spec.actions, rng)
    processes = (
        [f"w{number}" for number in range(1, workers + 1)],
        [f"p{number}" for number in range(1, producers + 1)],
    )
    calls = [
        call
        for number in range(1, producers + 1)
        for call in _Producer(spec, tasks, actions, number, chaos, seed).calls()
    ]
    return AppsPlan(
        tasks=(*tasks, *(_tick(cron) for cron in crons)),
        calls=tuple(_numbered(sorted(calls, key=lambda call: call.at))),
        faults=tuple(_faults(spec.faults, processes, nodes, chaos, stream(seed, "apps", "faults"))),
        crons=crons,
        workers=workers,
        producers=producers,
        concurrency=concurrency,
        prefetch=prefetch,
    )


def _kept(weighted: tuple[tuple[str, Range], ...], rng: random.Random) -> _WEIGHTED:
    """Return the weights of this seed. Each seed leaves out about half of the ways, so that rare
    ones become frequent in some seeds."""
    kept = [
        (name, weight.draw(rng))
        for name, weight in weighted
        if rng.random() < 0.5 or name in _PLAIN
    ]
    return tuple((name, weight) for name, weight in kept if weight > 0)


def _one(weighted: _WEIGHTED, rng: random.Random) -> str:
    names, weights = zip(*weighted, strict=True)
    return str(rng.choices(names, weights)[0])


def _tasks(spec: AppsSpec, rng: random.Random) -> Iterator[AppTask]:
    queues = [f"q{number}" for number in range(1, spec.queues.draw_int(rng) + 1)]
    for number in range(1, spec.tasks.draw_int(rng) + 1):
        yield _task(spec, f"t{number}", rng.choice(queues), rng)
    for number in range(1, spec.consumers.draw_int(rng) + 1):
        drawn = _task(spec, f"c{number}", f"bodies{number}", rng)
        yield attrs.evolve(drawn, is_consumer=True, conflict="", keep_s=0.0, has_result=False)


def _task(spec: AppsSpec, name: str, queue: str, rng: random.Random) -> AppTask:
    is_unique = rng.random() < spec.unique.draw(rng)
    return AppTask(
        name=name,
        queue=queue,
        executor=rng.choice(spec.executors),
        policy=rng.choice(spec.policies),
        attempts=spec.attempts.draw_int(rng),
        wait_s=round(spec.wait.draw(rng) / _SECOND, 3),
        timeout_s=float(rng.randint(1, 5)) if rng.random() < spec.limited.draw(rng) else None,
        lease_s=spec.lease.draw_int(rng),
        priority=rng.choice((None, None, rng.randint(-9, 9))),
        conflict=rng.choice(spec.conflicts) if is_unique else "",
        keep_s=float(rng.choice((0, 0, 5))) if is_unique else 0.0,
        has_result=rng.random() < spec.results.draw(rng),
    )


def _tick(cron: AppCron) -> AppTask:
    return AppTask(name=cron.task, queue="ticks")


@attrs.define
class _Producer:
    """Draws the calls of one producer."""

    spec: AppsSpec
    tasks: Sequence[AppTask]
    actions: _WEIGHTED
    number: int
    chaos: Micros
    seed: int
    rng: random.Random = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.rng = stream(self.seed, "apps", "calls", f"p{self.number}")

    def calls(self) -> Iterator[AppCall]:
        """Yield all calls. Gaps are uniform from 0 to twice the mean."""
        spec, rng = self.spec, self.rng
        kinds = tuple((name, weight.draw(rng)) for name, weight in spec.calls)
        gap = _SECOND / spec.rate.draw(rng)
        at = 0
        while (at := at + 1 + int(2 * gap * rng.random())) < self.chaos:
            kind = _one(kinds, rng)
            jobs = tuple(self._jobs(kind))
            yield AppCall(
                at=at,
                producer=self.number,
                kind=kind,
                jobs=jobs,
                waits=rng.random() < 0.5,
                cancel_s=self._cancel_s(kind),
            )

    def _cancel_s(self, kind: str) -> float:
        if kind != "flow" or self.rng.random() < 0.7:
            return 0.0
        return round(self.rng.uniform(0.01, 15), 2)

    def _jobs(self, kind: str) -> Iterator[AppJob]:
        size = 1 if kind == "single" else self.rng.randint(2, 7 if kind == "flow" else 5)
        plain = [each for each in self.tasks if not each.is_consumer]
        for place in range(size):
            is_later = (kind == "chain" and place > 0) or (kind == "then" and place == size - 1)
            is_later = is_later or kind == "flow"
            tasks = [each for each in plain if not each.conflict] if is_later else plain
            if kind == "single":
                tasks = list(self.tasks)
            job = self._job(self.rng.choice(tasks or plain), is_later=is_later)
            if kind == "flow":
                job = attrs.evolve(job, after=self._after(place))
            yield job

    def _after(self, place: int) -> tuple[int, ...]:
        """Return the predecessors of the member at this place."""
        share = self.rng.choice((0.3, 0.6, 1.0))
        return tuple(each for each in range(place) if self.rng.random() < share)

    def _job(self, task: AppTask, *, is_later: bool) -> AppJob:
        spec, rng = self.spec, self.rng
        is_calm = rng.random() < spec.calm.draw(rng)
        runs = 0 if is_calm else spec.runs.draw_int(rng)
        actions = [self._action(_one(self.actions, rng), task) for _ in range(runs)]
        is_delayed = not is_later and rng.random() < spec.delayed.draw(rng)
        return AppJob(
            number=0,
            task=task.name,
            actions=(*actions, self._action("return", task)),
            key=f"k{rng.randint(1, 3)}" if task.conflict and not is_later else "",
            delay_s=round(rng.uniform(0.1, 5), 1) if is_delayed else 0.0,
        )

    def _action(self, kind: str, task: AppTask) -> HandlerAction:
        rng = self.rng
        if kind in ("late", "stubborn") and task.timeout_s is None:
            kind = "error"
        work = self.spec.work.draw_int(rng)
        if task.timeout_s is not None and kind not in ("late", "stubborn"):
            work = min(work, int(task.timeout_s * _SECOND * 0.7))
        if kind in ("late", "stubborn") and task.timeout_s is not None:
            work = int((task.timeout_s + rng.uniform(0.5, 3)) * _SECOND)
        after = rng.uniform(2, 2.0 * task.lease_s) if kind == "block" else rng.uniform(0.2, 6)
        return HandlerAction(kind=kind, work=work, after_s=round(after, 2))


def _numbered(calls: Sequence[AppCall]) -> Iterator[AppCall]:
    number = 0
    for call in calls:
        jobs = []
        for job in call.jobs:
            number += 1
            jobs.append(attrs.evolve(job, number=number))
        yield attrs.evolve(call, jobs=tuple(jobs))


def _faults(
    specs: Sequence[AppFaultSpec],
    processes: tuple[list[str], list[str]],
    nodes: int,
    chaos: Micros,
    rng: random.Random,
) -> list[AppFault]:
    workers, producers = processes
    found: list[AppFault] = []
    for spec in specs:
        whom = {"worker": workers, "producer": producers, "any": [*workers, *producers]}[spec.whom]
        whom = workers if spec.kind == "stop" else whom
        at = spec.every.draw_int(rng)
        while at < chaos:
            hold = spec.hold.draw_int(rng)
            victim, node = rng.choice(whom), rng.randint(0, nodes)
            found.append(
                AppFault(
                    kind=spec.kind,
                    at=at,
                    process=victim,
                    hold=min(hold, chaos - at),
                    node=node if spec.kind == "cut" else 0,
                )
            )
            at += max(1, spec.every.draw_int(rng))
    return sorted(found, key=lambda fault: fault.at)
