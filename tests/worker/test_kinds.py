"""Values of a wrong kind are refused where a task, a job or a policy is declared."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from disque_trio.worker import App, Backoff, Fixed, Polynomial, Retry, Snooze
from disque_trio.worker.envelope import NotEncodableError
from disque_trio.worker.options import RunOptions

_Backoff: Any = Backoff
_Fixed: Any = Fixed
_Polynomial: Any = Polynomial
_Retry: Any = Retry
_Snooze: Any = Snooze


async def asynchronous(*_: object) -> float:
    """No policy: its answer would have to be awaited."""
    return 5


WRONG: Final[dict[str, list[Any]]] = {
    "queue": [7, b"mail", None, ["mail"], "a\ud800"],
    "lease": ["300", 30.5, None, True],
    "ttl": ["900", 900.5, math.inf],
    "priority": ["5", 1.5, True],
    "replicate": ["2", 1.5],
    "sync": ["2", 1.5, 0, True],
    "maxlen": ["2", 2.5],
    "result_ttl": ["60", 0.5],
    "unique": [5, b"k", "a\ud800"],
    "unique_for": ["for ever", -1, math.nan, timedelta(1)],
    "on_conflict": ["merge", None, 0],
    "timeout": ["5", timedelta(5), math.nan, True, 0, -1],
    "retry": [5, 0.5, "often", Backoff, None, [1, 2], lambda: 5, lambda _: 5, asynchronous],
    "executor": ["fibre", 1, "Thread"],
    "max_crashes": ["5", 1.5, True, 0],
    "name": [5, None, b"n", "", "a\ud800"],
    "aliases": ["old", [5], 5, None],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_a_value_of_a_wrong_kind_is_refused_where_it_is_declared(name: str, value: Any) -> None:
    app = App()
    options: Any = {"name": "t", name: value}

    with pytest.raises(ValueError, match="name|queue" if name == "name" else name):
        app.task(**options)(print)
    if name in RunOptions.__annotations__:
        with pytest.raises(ValueError, match=name):
            app.consumer("q", **{name: value})(print)


@pytest.mark.parametrize(
    ("name", "value"),
    [("delay", "5"), ("delay", math.nan), ("at", 5), ("at", datetime.now(UTC).date()), ("key", 5),
     ("key", "a\ud800"),
     ("headers", [1]), ("headers", {5: 1}), ("headers", None), ("repeat", "yes")],
)  # fmt: skip
def test_so_is_one_of_a_job(name: str, value: Any) -> None:
    task = App().task(name="t")(print)
    options: Any = {name: value}

    with pytest.raises(ValueError, match=name):
        task.using(**options)


def test_a_queue_may_have_bytes_that_are_not_utf_8() -> None:
    app = App()
    app.accept("q\udcff", "sidekiq")
    app.consumer("q\udcff")(print)

    task = app.task(name="t", queue="q\udcff")(print)

    assert task.definition.options.queue == "q\udcff"


@pytest.mark.parametrize(
    "make",
    [
        lambda app: app.accept("q\ud800", "sidekiq"),
        lambda app: app.consumer("q\ud800"),
        lambda app: app.consumer(["q"]),
        lambda app: app.consumer(None),
        lambda _: App(queue="q\ud800"),
        lambda app: app.task(name="t")(print).blocking.find("u\ud800"),
        lambda app: app.task(name="t")(print).blocking.find(5),
        lambda app: app.job(5),
        lambda app: app.job("\ud800"),
        lambda app: app.blocking.job(None),
    ],
)
def test_what_cannot_be_a_name_is_refused_wherever_it_is_given(make: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^(defaults of the app: )?(queue|unique|id)=.* must be text"
    ):
        make(App())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("form", each) for each in ("xml", None, 5)],
        *[("max_body", each) for each in (0, -1, "1", 1.5, None)],
        *[("lifespan", each) for each in (5, "f", lambda app: app)],
        *[("url", each) for each in (5, None, b"disque://h")],
    ],
)
def test_so_is_a_wrong_argument_of_an_app(name: str, value: Any) -> None:
    given: Any = {name: value}

    with pytest.raises(ValueError, match=f"^{name}=.* must be "):
        App(**given)
    if name == "url":
        with pytest.raises(ValueError, match=r"^url=.* must be "):
            App().use(value)


@pytest.mark.parametrize("name", ["jitter", "name", "ticks", "mised"])
def test_an_option_of_cron_that_there_is_not_is_refused(name: str) -> None:
    options: Any = {name: 5}

    with pytest.raises(TypeError, match=f"^there is no option {name}"):
        App().cron("@daily", **options)


def test_a_header_that_cannot_be_written_is_named() -> None:
    task = App().task(name="t")(print)

    for value in ("\ud800", math.nan, object()):
        with pytest.raises(NotEncodableError, match=r"^t: header 'x': "):
            task.using(headers={"a": 1, "x": value}).blocking.enqueue()


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: _Backoff(jitter=0.1), "jitter=0.1 must be one of 'full', 'half', 'none'"),
        (lambda: _Backoff(base="15"), "base='15' must be a number, 0 or more"),
        (lambda: _Backoff(base=-1), "base=-1"),
        (lambda: _Backoff(factor=0.5), "factor=0.5 must be a number, 1 or more"),
        (lambda: _Backoff(most=math.inf), "most=inf"),
        (lambda: _Backoff(attempts=2.5), "attempts=2.5 must be a whole number, 1 or more"),
        (lambda: _Backoff(never=ValueError), "never=.* must be a tuple of exception classes"),
        (lambda: _Backoff(expected=("OSError",)), "expected="),
        (lambda: _Polynomial(power=None), "power=None"),
        (lambda: _Fixed(5), "waits=5 must be numbers of seconds"),
        (lambda: _Fixed("123"), "waits='123'"),
        (lambda: _Fixed([1, None]), "waits="),
        (lambda: _Fixed([math.nan]), "waits="),
        (lambda: _Fixed([-1]), "waits="),
        (lambda: _Fixed([timedelta(1)]), "waits="),
        (
            lambda: _Retry(after="5"),
            "a wait must be a number of seconds from 0 to 316224000, not '5'",
        ),
        (lambda: _Retry(after=timedelta(1)), "a wait must be a number"),
        (lambda: _Snooze(math.nan), "a wait must be a number"),
        (lambda: _Snooze(None), "after=None"),
        (lambda: _Snooze(5, most="3"), "most='3'"),
    ],
)
def test_a_policy_that_cannot_work_is_refused_where_it_is_made(make: Any, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        make()


def test_a_policy_of_a_user_that_cannot_be_added_up_is_refused() -> None:
    class Odd(Backoff):
        def bound(self, _: int) -> Any:
            return "soon"

    with pytest.raises(ValueError, match="has waits that cannot be added"):
        App().task(name="t", retry=Odd())(print)


@pytest.mark.parametrize("wrong", [None, 5, lambda: None, lambda _: None])
def test_middleware_that_cannot_be_called_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="must be called with a job"):
        App().middleware(wrong)


@pytest.mark.parametrize("wrong", [None, 5, lambda: None, asynchronous])
def test_a_hook_that_cannot_be_called_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="must be a `def` of one argument"):
        App().on_enqueue(wrong)
