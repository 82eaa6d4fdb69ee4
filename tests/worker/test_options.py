"""What cannot work is refused where it is said."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.worker import App, Backoff, Fixed
from disque_trio.worker.options import Options, unique_key


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"lease": 2}, "lease is 2 s: a lease is at least 3 s, or 0"),
        ({"lease": 0, "replicate": 3}, "a job with lease 0 has one replica"),
        ({"ttl": 3}, "ttl is 3 s, and the lease 3 s: raise ttl"),
        (
            {"ttl": 300, "lease": 300},
            "ttl is 300 s, and the lease 300 s: raise ttl or lower the lease",
        ),
        (
            {"ttl": 604_800, "timeout": 400_000},
            r"timeout is 400000 s, more than half of ttl \(604800 s\)",
        ),
        ({"timeout": 0}, "timeout is 0 s"),
        (
            {"ttl": 3600, "retry": Fixed([3000, 700])},
            "may wait 3700 s in total, but the job lives 3600",
        ),
        ({"ttl": 604_800, "retry": Backoff(attempts=99)}, "raise ttl, or lower attempts"),
        ({"priority": 101}, "priority=101 must be a whole number from -100 to 100"),
        ({"queue": ""}, "queue is empty"),
        ({"queue": "disque-trio.reply"}, "disque-trio. is reserved"),
        ({"replicate": 0}, "replicate=0 must be a whole number from 1 to 65535"),
        ({"sync": 70_000}, "sync=70000 must be a whole number from 1 to 65535"),
        ({"lease": 10**9}, "lease=1000000000 must be a whole number of seconds, at most 316224000"),
        ({"ttl": 10**10}, "ttl=10000000000 must be a whole number of seconds, at most 4294967295"),
        (
            {"unique_for": 1e-9},
            "unique_for=1e-09 must be 'until-done' or a number of seconds, from",
        ),
        ({"unique_for": 10**9}, "unique_for=1000000000 must be 'until-done' or a number of"),
        ({"result_ttl": 10**9}, "result_ttl=1000000000 must be a whole number from 1 to"),
        ({"name": "x" * 201}, "has 201 bytes, not 1 to 200"),
        ({"aliases": [""]}, "has 0 bytes"),
        ({"max_crashes": 0}, "max_crashes=0 must be a whole number, 1 or more"),
    ],
)
def test_a_task_that_cannot_work_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=r"^task \S+: .*" + reason):
        App().task(**{"name": "mail.send", **options})(print)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"delay": -1}, "delay is -1 s: it is 0 or more"),
        ({"delay": 700_000, "ttl": 604_800}, r"less than ttl \(604800 s\)"),
        ({"at": datetime(2026, 1, 1)}, "without a time zone"),
        ({"at": datetime.now(UTC), "delay": 3}, "give delay or at, not both"),
        ({"headers": {"tries": 3, "ttl": 4}}, "header tries, ttl: the library sets it"),
        ({"ttl": 500}, "timeout is 300 s, more than half of ttl"),
    ],
)
def test_a_job_that_cannot_work_is_refused(options: dict[str, Any], reason: str) -> None:
    @App().task(name="send", timeout=300, retry=Fixed([1]))
    async def send() -> None: ...

    with pytest.raises(ValueError, match=reason):
        send.using(**options)


def test_with_a_shorter_life_a_job_has_fewer_attempts() -> None:
    app = App()
    app.task(name="short", ttl=3600)(print)
    task = app.task(name="long", retry=Backoff())(print)

    assert task.using(ttl=3600).definition.options.ttl == 3600


def test_an_unknown_option_is_told_with_the_nearest_one() -> None:
    @App().task(name="send")
    async def send() -> None: ...

    with pytest.raises(TypeError, match="there is no option prioriti; did you mean priority"):
        send.using(prioriti=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="there is no option time_out; did you mean timeout"):
        App().task(time_out=3)(print)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"there is no option lease$"):
        App().consumer("raw", lease=3)  # type: ignore[call-arg]


def test_two_tasks_do_not_share_a_name() -> None:
    app = App()
    app.task(name="a", aliases=["b"])(print)

    with pytest.raises(ValueError, match="there are two tasks b: give one another name"):
        app.task(name="b")(print)
    app.consumer("raw")(print)
    with pytest.raises(ValueError, match="queue raw has two consumers"):
        app.consumer("raw")(print)


def test_a_task_has_the_name_of_its_function_in_its_module() -> None:
    @App().task()
    async def send() -> None:
        """Sends."""

    assert send.name.endswith(
        "test_options.test_a_task_has_the_name_of_its_function_in_its_module.<locals>.send"
    )
    told: Any = send
    assert (told.__name__, told.__doc__) == ("send", "Sends.")


def test_a_task_of_a_script_needs_a_name() -> None:
    def fn() -> None: ...

    fn.__module__ = "__main__"
    main: Any = __import__("sys").modules["__main__"]
    spec, main.__spec__ = main.__spec__, None
    try:
        with pytest.raises(ValueError, match="a script, whose module has no name: give it one"):
            App().task()(fn)
    finally:
        main.__spec__ = spec


@given(st.floats(-1000, 500_000))
def test_a_time_becomes_a_delay_in_whole_seconds(seconds: float) -> None:
    now = 1_800_000_000.0
    at = datetime.fromtimestamp(now, UTC) + timedelta(seconds=seconds)

    delay, _ = Options(at=at).times(now)

    assert delay == max(math.ceil(at.timestamp() - now), 0)
    assert now + delay >= at.timestamp()


def test_a_time_after_the_jobs_life_is_refused() -> None:
    at = datetime.fromtimestamp(2_000, UTC)

    with pytest.raises(ValueError, match="in 1000 s: it must be before ttl"):
        Options(at=at, lease=10, ttl=900).times(1_000)


# Keys of unique jobs.


@given(st.text(max_size=300), st.text(max_size=300), st.binary())
def test_a_unique_key_fits_and_belongs_to_its_task(
    unique: str, other: str, arguments: bytes
) -> None:
    assert len(unique_key("t", unique, arguments).encode()) <= 256
    assert unique_key("t", unique, arguments) == unique_key("t", unique, b"")
    assert (unique_key("t", unique, b"") == unique_key("t", other, b"")) == (unique == other)
    assert unique_key("t", unique, b"") != unique_key("u", unique, b"")
    assert (unique_key("t", True, arguments) == unique_key("t", True, b"")) == (not arguments)


def test_a_task_without_options_is_declared_without_parentheses() -> None:
    app = App()

    @app.task
    def pay(number: int) -> int:
        return number

    assert app.tasks[pay.name] is pay
    assert pay(3) == 3
    with pytest.raises(ValueError, match=r"is not a function; set the name with name='pay'"):
        app.task("pay")  # type: ignore[call-overload]
