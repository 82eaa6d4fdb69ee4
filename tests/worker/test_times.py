"""How long tasks run."""

import json
import math
import random
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import Dead, Done, Outcome, Release, Retry
from disque_trio.worker.health import pages
from disque_trio.worker.protocol import Run
from disque_trio.worker.times import (
    MOST_TASKS,
    WINDOW_S,
    RunTimes,
    TaskTimes,
    bounds,
    bucket_of,
    exposition,
    merged,
)
from tests.worker.played import PlayedNode, job
from tests.worker.playing import KINDS, play


class Clock:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def ran(times: RunTimes, clock: Clock, seconds: float, task: str = "t") -> None:
    times.note(task, seconds, False)


def test_buckets_follow_each_other_without_a_gap_and_are_a_quarter_of_an_octave() -> None:
    end = bounds(-81)[0]
    for bucket in range(-81, 90):
        low, high = bounds(bucket)
        assert low == end
        assert bucket_of(low) == bucket_of((low + high) / 2) == bucket
        assert (high - low) / low <= 0.25
        end = high
    assert bounds(-81)[0] < 1e-6
    assert end > 10 * 86_400


def test_a_run_of_no_time_is_among_the_shortest() -> None:
    clock = Clock()
    times = RunTimes(clock)
    for _ in range(2500):
        ran(times, clock, 0.0)

    [found] = times.lately()

    assert found.runs == 2500
    assert found.quantile(1.0) == pytest.approx(1e-9, rel=0.3)


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_a_quantile_is_within_a_quarter_of_the_true_one(share: float) -> None:
    rng, clock = random.Random(7), Clock()
    times, true = RunTimes(clock), [rng.lognormvariate(-3, 2) for _ in range(5000)]
    for each in true:
        ran(times, clock, each)

    [found] = times.lately()

    wanted, got = sorted(true)[math.ceil(share * len(true)) - 1], found.quantile(share)
    assert got is not None
    assert abs(got - wanted) <= wanted / 4


@pytest.mark.parametrize(
    "runs",
    [[1.0], [1.2], [1.2367], [1.0, 1.0], [0.25, 1.0, 1.0, 7.0], [1.01, 1.02, 1.03, 1.0367]],
)
def test_no_quantile_is_above_the_longest_run(runs: list[float]) -> None:
    clock = Clock()
    times = RunTimes(clock)
    for each in runs:
        ran(times, clock, each)

    [found] = times.lately()

    assert found.quantile(0.99) == pytest.approx(max(runs), rel=0.25)
    for share in (0.5, 0.95, 0.99, 1.0):
        assert (found.quantile(share) or 0.0) <= max(runs)


def test_without_the_longest_run_no_quantile_is_above_what_the_sum_leaves_for_it() -> None:
    clock = Clock()
    one, other = RunTimes(clock), RunTimes(clock)
    for each in (1.0, 1.0):
        ran(one, clock, each)
        ran(other, clock, each)
    [old], [new] = one.lately(), other.lately()
    old.longest = 0.0  # of a worker of an earlier version

    [both] = merged([old, new]).values()

    assert (both.longest, both.quantile(0.99)) == (0.0, 1.0)


def test_the_quantiles_of_one_run_are_that_run() -> None:
    clock = Clock()
    times = RunTimes(clock)
    ran(times, clock, 1.2)

    [found] = times.lately()

    assert {found.quantile(share) for share in (0.5, 0.99)} == {1.2}


def test_the_sum_of_two_workers_is_that_of_both() -> None:
    clock = Clock()
    one, other, both = RunTimes(clock), RunTimes(clock), RunTimes(clock)
    for n in range(1, 100):
        ran(one if n % 3 else other, clock, n / 7)
        ran(both, clock, n / 7)

    [whole] = merged([*one.lately(), *other.lately()]).values()

    [wanted] = both.lately()
    assert (whole.buckets, whole.runs) == (wanted.buckets, 99)
    assert whole.seconds == pytest.approx(wanted.seconds)
    assert whole.longest == wanted.longest == 99 / 7


def test_a_report_forgets_what_was_ten_minutes_ago_and_metrics_do_not() -> None:
    clock = Clock()
    times = RunTimes(clock)
    ran(times, clock, 3.0)
    seen = []
    for at in (1, WINDOW_S + 1, 2 * WINDOW_S + 1):
        clock.at = at
        seen.append([each.runs for each in times.lately()])

    assert seen == [[1], [1], []]
    assert times.ever()["t"].runs == 1


def test_a_report_has_the_tasks_with_most_runs() -> None:
    clock = Clock()
    times = RunTimes(clock)
    for n in range(MOST_TASKS + 20):
        for _ in range(n + 1):
            ran(times, clock, 0.1, f"t{n}")

    names = [each.task for each in times.lately()]

    assert names == [f"t{n}" for n in range(MOST_TASKS + 19, 19, -1)]


def test_no_run_has_no_quantile() -> None:
    assert TaskTimes(task="t").quantile(0.5) is None


def test_prometheus_reads_what_is_exposed() -> None:
    clock = Clock()
    times = RunTimes(clock)
    ran(times, clock, 0.0002, 'a"b\\c\nd')
    ran(times, clock, 40 * 86_400, 'a"b\\c\nd')
    times.note("other", 0.0, True)

    families = {each.name: each for each in text_string_to_metric_families(exposition(times))}

    histogram = families["disque_worker_task_seconds"]
    assert histogram.type == "histogram"
    buckets = [
        each.value
        for each in histogram.samples
        if each.name.endswith("_bucket") and each.labels["task"] == 'a"b\\c\nd'
    ]
    assert (buckets[0], buckets[-2], buckets[-1]) == (1, 1, 2)
    assert buckets == sorted(buckets)
    failures = {
        each.labels["task"]: each.value for each in families["disque_worker_task_failures"].samples
    }
    assert failures["other"] == 1


class Named:
    """Each job has a task, and ends so."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes = list(outcomes)

    async def __call__(self, run: Run) -> Outcome:
        run.task = "mail.send"
        return self.outcomes.pop(0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_counts_runs_and_failures_and_no_snoozes(kind: str) -> None:
    node = PlayedNode()
    handler: Any = Named(Done(), Retry(0), Dead(b"no"), Release())

    async def story(worker: Worker) -> None:
        node.give(*(job(n) for n in range(4)))
        while worker.report().ended < 4:
            await node.is_told(b"GETJOB")
        [told] = worker.report().tasks
        assert (told.task, told.runs, told.failures) == ("mail.send", 3, 2)
        status, text, kind = pages(worker.report, worker.times)["/metrics"]()
        assert (status, kind.partition(";")[0]) == (200, "text/plain")
        families = {each.name: each for each in text_string_to_metric_families(text.decode())}
        assert families["disque_worker_jobs_ended"].samples[0].value == 4
        assert families["disque_worker_slots"].samples[0].value == 10
        assert json.loads(pages(worker.report, worker.times)["/health"]()[1])["tasks"]
        worker.stop()

    play(kind, story, node, handler=handler)
