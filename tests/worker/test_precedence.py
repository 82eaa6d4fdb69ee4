"""Defaults of an app, and options that give way to others."""

from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

import pytest

from disque_trio.worker import App, Fixed, Polynomial
from disque_trio.worker.options import AppOptions, Definition, Options
from disque_trio.worker.task import Prepared

DAY = 24 * 3600
OF_APP: dict[str, Any] = {
    "queue": "slow",
    "lease": 60,
    "ttl": 3600,
    "priority": 5,
    "replicate": 2,
    "sync": 1,
    "maxlen": 9,
    "result_ttl": 30,
    "timeout": 20,
    "retry": Fixed([1, 2]),
    "max_crashes": 2,
}


def declared(of_app: dict[str, Any], of_task: dict[str, Any]) -> Prepared[..., Any]:
    task: Prepared[..., Any] = App(**of_app).task(name="mail.send", **of_task)(print)
    return task


def values(definition: Definition) -> dict[str, Any]:
    """The options that an app may have, as they hold for a task."""
    return {
        name: getattr(definition if hasattr(definition, name) else definition.options, name)
        for name in AppOptions.__annotations__
    }


def test_an_app_has_defaults_of_all_its_tasks() -> None:
    assert OF_APP.keys() == AppOptions.__annotations__.keys()
    assert values(declared(OF_APP, {}).definition) == OF_APP


@pytest.mark.parametrize("name", AppOptions.__annotations__)
def test_a_task_names_another_value_for_each_default(name: str) -> None:
    plain = values(declared({}, {}).definition)
    other: dict[str, Any] = {
        "priority": 0,
        "replicate": 3,
        "sync": 2,
        "maxlen": 8,
        "result_ttl": 31,
        "timeout": 21,
    }
    other["retry"] = Fixed([3])
    changed = {name: other.get(name, plain[name])}

    assert values(declared(OF_APP, changed).definition) == {**OF_APP, **changed}


def test_options_of_a_job_have_precedence_over_those_of_the_task_and_of_the_app() -> None:
    task = declared({"lease": 60, "priority": 1, "replicate": 2}, {"lease": 90, "priority": 2})

    options = task.using(priority=3).definition.options

    assert (options.priority, options.lease, options.replicate) == (3, 90, 2)


def test_consumers_and_jobs_for_other_systems_have_the_defaults_of_the_app() -> None:
    app = App(timeout=20, max_crashes=2, retry=Fixed([1]), replicate=2, lease=60)
    app.consumer("raw", max_crashes=3)(print)

    (definition, _), options = app._consumers["raw"], app.producer("sidekiq").options

    assert (definition.timeout, definition.retry) == (20, Fixed([1]))
    assert (definition.max_crashes, definition.options.queue) == (3, "raw")
    assert (options.replicate, options.lease) == (2, 60)


@pytest.mark.parametrize(
    ("defaults", "reason"),
    [
        ({"lease": 2}, "lease is 2 s"),
        ({"ttl": 60, "lease": 60}, "ttl is 60 s, and the lease 60 s"),
        ({"ttl": 60, "timeout": 31}, "timeout is 31 s, more than half of ttl"),
        ({"ttl": 60, "retry": Fixed([61])}, "its attempts may wait 61 s in total"),
        ({"priority": 101}, "priority=101 must be"),
        ({"sync": 0}, "sync=0 must be a whole number from 1"),
        ({"sync": 3, "replicate": 2}, "sync is 3, and replicate 2: raise replicate or lower sync"),
        ({"queue": "disque-trio.x"}, "disque-trio. is reserved"),
        ({"max_crashes": 0}, "max_crashes=0"),
        ({"lease": 0, "replicate": 2}, "a job with lease 0 has one replica"),
    ],
)
def test_defaults_that_cannot_work_are_refused_with_the_app(
    defaults: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match="^defaults of the app: .*" + reason):
        App(**defaults)


@pytest.mark.parametrize("name", ["leas", "unique", "executor", "name", "delay"])
def test_an_option_that_is_no_default_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"there is no option {name}"):
        App(**{name: 1})  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("of_app", "of_task", "settled"),
    [
        ({}, {"ttl": 60}, {"lease": 30}),
        ({}, {"ttl": 5}, {"lease": 3}),
        ({}, {"ttl": 300}, {"lease": 150}),
        ({}, {"ttl": 3600}, {"lease": 300}),
        ({"ttl": 60}, {}, {"ttl": 60, "lease": 30}),
        ({"ttl": 600, "lease": 500}, {}, {"ttl": 600, "lease": 500}),
        ({"lease": 600}, {"ttl": 60}, {"lease": 30}),
        ({"lease": 0}, {"ttl": 60}, {"lease": 0}),
        ({}, {"lease": 400_000}, {"ttl": 800_000}),
        ({"ttl": 60}, {"lease": 90}, {"ttl": 180}),
        ({}, {"timeout": 400_000}, {"ttl": 800_000, "lease": 300}),
        ({"ttl": 60}, {"timeout": 45.5}, {"ttl": 91, "lease": 45}),
        ({"timeout": 300}, {"ttl": 60}, {"timeout": 30, "lease": 30}),
        ({"timeout": 300}, {}, {"timeout": 300}),
        ({}, {"retry": Polynomial()}, {"ttl": ceil(Polynomial().longest()) + DAY}),
        ({"retry": Polynomial()}, {"ttl": 60}, {"ttl": 60}),
        ({"ttl": 60}, {"retry": Fixed([61])}, {"ttl": 61 + DAY}),
        ({"replicate": 2}, {"lease": 0}, {"replicate": 1}),
        ({"replicate": 3, "sync": 2}, {"lease": 0}, {"replicate": 1, "sync": 1}),
        ({"replicate": 3, "sync": 2}, {"replicate": 1}, {"replicate": 1, "sync": 1}),
        ({"replicate": 2}, {"sync": 3}, {"replicate": 3, "sync": 3}),
    ],
)
def test_a_default_gives_way_to_an_option_of_the_task(
    of_app: dict[str, Any], of_task: dict[str, Any], settled: dict[str, Any]
) -> None:
    assert values(declared(of_app, of_task).definition).items() >= settled.items()


def test_a_default_gives_way_to_an_option_of_the_job() -> None:
    task = declared({"timeout": 300}, {})

    short = task.using(ttl=60)
    assert (short.definition.options.lease, short.definition.timeout) == (30, 30)
    assert values(short.using(ttl=3600).definition)["lease"] == 300
    assert task.using(delay=10 * DAY).definition.options.ttl == 20 * DAY


def test_what_two_named_options_contradict_is_an_error() -> None:
    with pytest.raises(ValueError, match="ttl is 60 s, and the lease 90 s: raise ttl or lower"):
        declared({}, {"lease": 90}).using(ttl=60)
    with pytest.raises(ValueError, match="delay is 60 s: it is 0 or more, and less than ttl"):
        declared({}, {"ttl": 60}).using(delay=60)
    with pytest.raises(ValueError, match="timeout is 31 s, more than half of ttl"):
        declared({}, {"timeout": 31}).using(ttl=60)
    with pytest.raises(ValueError, match="a job with lease 0 has one replica"):
        declared({"lease": 0}, {"replicate": 2})


def test_a_job_that_is_due_after_the_default_ttl_lives_longer() -> None:
    now = 1_800_000_000.0
    at = datetime.fromtimestamp(now, UTC) + timedelta(days=10)

    options = declared({}, {}).using(at=at).definition.options
    assert options.times(now) == (10 * DAY, 20 * DAY)
    assert options.times(now + 9 * DAY) == (DAY, 7 * DAY)
    named: Options = declared({}, {"ttl": 7 * DAY}).using(at=at).definition.options
    with pytest.raises(ValueError, match="it must be before ttl"):
        named.times(now)


def test_of_at_and_delay_the_later_one_counts() -> None:
    at = datetime.now(UTC)
    task = declared({}, {})

    assert task.using(at=at).using(delay=5).definition.options.at is None
    assert task.using(delay=5).using(at=at).definition.options.delay == 0
