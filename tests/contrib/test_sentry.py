"""Sentry: failures of jobs are events that name the job, once each, without its body."""

import json
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

pytest.importorskip("sentry_sdk")

import sentry_sdk
from sentry_sdk.transport import Transport

from disque_trio.contrib.sentry import Errors, instrument
from disque_trio.testing.inline.kit import Inline
from disque_trio.worker import App, Cancel, Dead, Fixed, Snooze
from tests.worker.failing import ERRORS, fail
from tests.worker.runs import outcome

SECRET = "4111111111111111"


class Sent(Transport):  # type: ignore[misc]  # mypy does not follow its import
    """Keeps what would be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Any] = []

    def capture_envelope(self, envelope: Any) -> None:
        for item in envelope.items:
            if item.headers.get("type") in ("event", "transaction"):
                self.events.append(item.payload.json)

    def errors(self) -> list[Any]:
        return [each for each in self.events if each.get("type") != "transaction"]

    def transactions(self) -> list[Any]:
        return [each for each in self.events if each.get("type") == "transaction"]


@pytest.fixture
def sent() -> Iterator[Sent]:
    transport = Sent()
    sentry_sdk.init(
        dsn="http://key@127.0.0.1:1/1", transport=transport, traces_sample_rate=1.0,
        default_integrations=True, auto_enabling_integrations=False, shutdown_timeout=0,
    )  # fmt: skip
    try:
        yield transport
    finally:
        sentry_sdk.get_client().close(timeout=0)
        sentry_sdk.get_global_scope().set_client(None)


def app_of(errors: Errors = "final") -> App[None]:
    app = App()
    instrument(app, errors=errors)

    @app.task(name="pay", queue="cards", retry=Fixed([1]))
    async def pay(card: str, how: str) -> None:
        sentry_sdk.add_breadcrumb(message=f"asks the bank {how}")
        if how in ERRORS:
            fail(how)
        if how != "done":
            kinds: dict[str, BaseException] = {
                "fail": ConnectionError("no answer"),
                "dead": Dead("stolen"),
                "cancel": Cancel("no"),
                "snooze": Snooze(5, most=1),
            }
            raise kinds[how]

    return app


def play(inline: Inline, app: App[None], how: str) -> Any:
    job = app.tasks["pay"].blocking.enqueue(SECRET, how)
    inline.blocking.run_all(app, may_die=True)
    return job


@pytest.mark.parametrize(
    ("errors", "how", "outcomes"),
    [
        ("final", "fail", ["dead"]),
        ("all", "fail", ["retried", "dead"]),
        ("final", "dead", ["dead"]),
        ("final", "cancel", []),
        ("all", "cancel", []),
        ("all", "done", []),
    ],
)
def test_failures_are_sent_once_with_what_is_known_of_the_job(
    disque_inline: Inline, sent: Sent, errors: Errors, how: str, outcomes: list[str]
) -> None:
    job = play(disque_inline, app_of(errors), how)

    found = sent.errors()
    assert [each["tags"]["disque.outcome"] for each in found] == outcomes
    for attempt, each in enumerate(found, start=3 - len(found) if how == "fail" else 1):
        known = each["contexts"]["disque job"]
        assert (known["task"], known["id"], known["key"]) == ("pay", job.id, job.key)
        assert (known["attempt"], known["queue"]) == (attempt, "cards")
        assert each["tags"]["disque.task"] == "pay"
        kind = "ConnectionError" if how == "fail" else "Dead"
        assert each["exception"]["values"][-1]["type"] == kind
        assert f"asks the bank {how}" in [
            crumb["message"] for crumb in each["breadcrumbs"]["values"]
        ]


def test_no_body_is_sent_from_our_own_functions(disque_inline: Inline, sent: Sent) -> None:
    play(disque_inline, app_of(), "fail")

    [error] = sent.errors()
    frames = error["exception"]["values"][-1]["stacktrace"]["frames"]
    ours = [each for each in frames if each["module"].startswith("disque_trio.")]
    assert ours
    assert SECRET not in json.dumps(ours)
    assert SECRET not in json.dumps({**error, "exception": None})


def test_a_run_continues_the_trace_of_its_producer(disque_inline: Inline, sent: Sent) -> None:
    app = app_of()
    with sentry_sdk.start_transaction(name="GET /pay") as request:
        job = app.tasks["pay"].blocking.enqueue(SECRET, "dead")
    disque_inline.blocking.run_all(app, may_die=True)

    web, run = sent.transactions()
    assert [span["op"] for span in web["spans"]] == ["queue.publish"]
    assert run["transaction"] == "pay"
    assert run["contexts"]["trace"]["op"] == "queue.process"
    assert run["contexts"]["trace"]["trace_id"] == request.trace_id
    assert run["contexts"]["trace"]["parent_span_id"] == web["spans"][0]["span_id"]
    assert run["contexts"]["trace"]["data"]["messaging.message.id"] == job.key
    [error] = sent.errors()
    assert error["contexts"]["trace"]["trace_id"] == request.trace_id


@pytest.mark.parametrize(("how", "status"), [("snooze", None), ("fail", "internal_error")])
def test_an_order_is_no_failure_of_the_transaction(
    disque_inline: Inline, sent: Sent, how: str, status: str | None
) -> None:
    play(disque_inline, app_of(), how)

    assert sent.transactions()[0]["contexts"]["trace"].get("status") == status


@pytest.mark.parametrize("body", [b"{", b'{"task": "pay"}', b'{"task": "pay", "args": [1, 2]}'])
def test_a_job_that_cannot_be_read_is_sent(sent: Sent, body: bytes) -> None:
    outcome(app_of(), body)

    [error] = sent.errors()
    assert error["exception"]["values"][-1]["type"] == "BadBodyError"
    assert error["tags"]["disque.outcome"] == "dead"


@pytest.mark.parametrize("what", ERRORS)
def test_an_error_that_cannot_say_what_it_is_changes_nothing(
    disque_inline: Inline, sent: Sent, what: str
) -> None:
    play(disque_inline, app_of(), what)

    assert len(disque_inline.dead()) == 1


def test_jobs_do_not_share_breadcrumbs(disque_inline: Inline, sent: Sent) -> None:
    app = app_of()

    async def both() -> None:
        async with app:
            await app.enqueue_many([app.tasks["pay"].call(SECRET, how) for how in ("done", "dead")])
        await disque_inline.run_all(app, may_die=True)

    anyio.run(both, backend="trio")

    [error] = sent.errors()
    crumbs = [crumb.get("message") for crumb in error["breadcrumbs"]["values"]]
    assert "asks the bank done" not in crumbs
    assert "asks the bank dead" in crumbs


def test_without_a_client_nothing_changes(disque_inline: Inline) -> None:
    play(disque_inline, app_of(), "fail")

    assert len(disque_inline.dead()) == 1


def test_what_is_no_choice_is_refused() -> None:
    with pytest.raises(ValueError, match="'final' or 'all'"):
        instrument(App(), errors="some")  # type: ignore[arg-type]
