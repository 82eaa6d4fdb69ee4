"""OpenTelemetry: the producer and each run of a job are spans, and the runs name the producer."""

import contextlib
import time
from typing import Any

import pytest
import trio

from disque_trio.testing.inline.kit import Inline
from disque_trio.worker import App, BatchEnds, Cancel, Dead, Fixed, NoJobError, Snooze, current_job
from tests.worker.failing import ERRORS, fail

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import propagate
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
    InMemorySpanExporter,
)
from opentelemetry.trace import SpanKind, StatusCode

from disque_trio.contrib.otel import instrument


class Watched:
    """An app whose spans and metrics can be read."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.tasks = App()
        instrument(
            self.tasks,
            tracer_provider=self.tracers,
            meter_provider=MeterProvider([self.reader]),
        )

    @property
    def spans(self) -> list[ReadableSpan]:
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        found = data.resource_metrics[0].scope_metrics[0].metrics
        return [point for each in found if each.name == name for point in each.data.data_points]


def test_a_run_is_linked_to_the_span_that_added_the_job(disque_inline: Inline) -> None:
    watched = Watched()

    @watched.tasks.task(name="greet", queue="mail")
    def greet(name: str) -> None:
        pass

    with watched.tracers.get_tracer("web").start_as_current_span("GET /") as request:
        added = greet.blocking.enqueue("ada")
    disque_inline.blocking.run_all(watched.tasks)

    _, create, process = watched.spans
    assert (create.name, create.kind) == ("create mail", SpanKind.PRODUCER)
    assert (process.name, process.kind) == ("process mail", SpanKind.CONSUMER)
    assert create.parent == request.get_span_context()
    assert process.parent is None, "it may run hours later, and twice"
    (link,) = process.links
    assert create.context is not None
    assert (link.context.trace_id, link.context.span_id) == (
        create.context.trace_id,
        create.context.span_id,
    )
    attributes = dict(process.attributes or {})
    assert attributes["messaging.system"] == "disque"
    assert attributes["messaging.message.id"] == added.id
    assert attributes["messaging.message.conversation_id"] == added.key
    assert attributes["messaging.disque.attempt"] == 1
    assert [point.value for point in watched.points("messaging.client.sent.messages")] == [1]
    assert [point.count for point in watched.points("messaging.process.duration")] == [1]


def test_each_attempt_is_a_span_and_a_failure_says_what_it_was(disque_inline: Inline) -> None:
    watched = Watched()

    @watched.tasks.task(name="greet", queue="mail", retry=Fixed([1]))
    def greet() -> None:
        raise ConnectionError("no answer")

    greet.blocking.enqueue()
    disque_inline.blocking.run_all(watched.tasks, may_die=True)

    runs = watched.spans[1:]
    assert [(span.attributes or {})["messaging.disque.attempt"] for span in runs] == [1, 2]
    assert {span.status.status_code for span in runs} == {StatusCode.ERROR}
    assert {(span.attributes or {})["error.type"] for span in runs} == {"ConnectionError"}
    assert [event.name for event in runs[0].events] == ["exception"]


def test_a_snooze_is_no_failure(disque_inline: Inline) -> None:
    watched = Watched()
    asked: list[int] = []

    @watched.tasks.task(name="greet", queue="mail")
    def greet() -> None:
        asked.append(1)
        if len(asked) == 1:
            raise Snooze(5)

    greet.blocking.enqueue()
    disque_inline.blocking.run_all(watched.tasks)

    runs = [span for span in watched.spans if span.name == "process mail"]
    assert {span.status.status_code for span in runs} == {StatusCode.UNSET}
    assert len(runs) == 2


def test_a_job_of_a_producer_without_tracing_has_no_link(disque_inline: Inline) -> None:
    plain = App()
    watched = Watched()
    for tasks in (plain, watched.tasks):
        tasks.task(name="greet", queue="mail")(lambda: None)

    plain.tasks["greet"].blocking.enqueue()
    disque_inline.blocking.run_all(watched.tasks)

    (process,) = watched.spans
    assert process.links == ()


class Broken(SpanProcessor):  # type: ignore[misc]  # the SDK may be missing
    """Fails as `when` says."""

    def __init__(self, when: str) -> None:
        self.when = when

    def on_start(self, span: object, parent_context: object = None) -> None:  # noqa: ARG002
        """May fail."""
        if self.when == "start":
            raise OSError("no collector")

    def on_end(self, span: object) -> None:  # noqa: ARG002
        """May fail."""
        if self.when == "end":
            raise OSError("no collector")


@pytest.mark.parametrize("when", ["start", "end", "inject"])
def test_a_job_does_not_suffer_from_telemetry_that_fails(
    disque_inline: Inline, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    watched, ran = Watched(), []
    watched.tracers.add_span_processor(Broken(when))
    if when == "inject":
        monkeypatch.setattr(propagate, "inject", lambda _: Broken("start").on_start(None))
        monkeypatch.setattr(propagate, "extract", lambda *_: Broken("start").on_start(None))

    @watched.tasks.task(name="greet", queue="mail", retry=Fixed([]))
    def greet() -> None:
        ran.append("ada")

    greet.blocking.enqueue()
    outcomes = disque_inline.blocking.run_all(watched.tasks)

    assert ran == ["ada"]
    assert [(each.task, each.attempt, str(each.end)) for each in outcomes] == [("greet", 1, "done")]


async def test_what_follows_a_batch_is_linked_to_its_producer(disque_inline: Inline) -> None:
    watched = Watched()

    @watched.tasks.task(name="page", queue="mail")
    async def page() -> None:
        pass

    @watched.tasks.task(name="publish", queue="mail")
    async def publish(ends: BatchEnds) -> None:
        pass

    async with watched.tasks:
        await watched.tasks.batch([page.call()], then=publish.partial())
    await disque_inline.run_all(watched.tasks)

    of_task = [
        each
        for each in watched.spans
        if (each.attributes or {})["messaging.disque.task"] == "publish"
    ]
    assert [each.name for each in of_task] == ["create mail", "process mail"]
    create, process = of_task
    assert create.context is not None
    assert [link.context.span_id for link in process.links] == [create.context.span_id]


async def test_a_run_that_is_cancelled_is_no_failure(disque_inline: Inline) -> None:
    watched = Watched()

    @watched.tasks.task(name="greet", queue="mail")
    async def greet() -> None:
        await trio.sleep_forever()

    with trio.move_on_after(0.1):
        await disque_inline.perform(greet)

    [run] = [span for span in watched.spans if span.name.startswith("process")]
    assert run.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize("how", ["async", "thread", "process"])
def test_a_run_that_takes_too_long_has_failed(disque_inline: Inline, how: str) -> None:
    watched = Watched()
    options: Any = {"name": "t", "queue": "mail", "timeout": 0.02, "retry": Fixed([])}
    if how == "async":

        @watched.tasks.task(**options)
        async def soon() -> None:
            await trio.sleep_forever()
    else:
        watched.tasks.task(**{**options, "executor": how})(too_long)

    watched.tasks.tasks["t"].blocking.enqueue()
    disque_inline.blocking.run_all(watched.tasks, may_die=True)

    [run] = [span for span in watched.spans if span.name == "process mail"]
    assert run.status.status_code is StatusCode.ERROR
    assert (run.attributes or {})["error.type"] == "JobTimeoutError"
    [point] = watched.points("messaging.process.duration")
    assert point.attributes["error.type"] == "JobTimeoutError"


def too_long() -> None:
    """It ends when it has been told to, or with its process, which has no job."""
    with contextlib.suppress(NoJobError):
        while True:
            time.sleep(0.001)
            current_job().check()
    time.sleep(60)


@pytest.mark.parametrize("what", ERRORS)
def test_an_error_that_cannot_say_what_it_is_is_recorded(disque_inline: Inline, what: str) -> None:
    watched = Watched()

    @watched.tasks.task(name="t", queue="mail", retry=Fixed([]))
    async def t() -> None:
        fail(what)

    t.blocking.enqueue()
    disque_inline.blocking.run_all(watched.tasks, may_die=True)

    [run] = [span for span in watched.spans if span.name == "process mail"]
    assert run.status.status_code is StatusCode.ERROR
    assert [event.name for event in run.events] == ["exception"]


@pytest.mark.parametrize("what", ["succeeded", "retried", "dead", "cancelled", "released"])
def test_a_run_says_what_became_of_its_job(disque_inline: Inline, what: str) -> None:
    watched = Watched()

    @watched.tasks.task(name="t", queue="mail", retry=Fixed([60]))
    async def t() -> None:
        ends = {
            "retried": ValueError(),
            "dead": Dead("no"),
            "cancelled": Cancel("no"),
            "released": Snooze(60),
        }
        if what in ends:
            raise ends[what]

    t.blocking.enqueue()
    disque_inline.blocking.run_for(watched.tasks, 0, may_die=True)

    [run] = [span for span in watched.spans if span.name == "process mail"]
    assert (run.attributes or {})["messaging.disque.outcome"] == what
    assert run.status.status_code is (
        StatusCode.ERROR if what in ("retried", "dead") else StatusCode.UNSET
    )
    [point] = watched.points("messaging.process.duration")
    assert point.attributes["messaging.disque.outcome"] == what
    assert point.attributes["messaging.disque.task"] == "t"
    [point] = watched.points("messaging.client.consumed.messages")
    assert (point.value, dict(point.attributes)["messaging.operation.type"]) == (1, "process")


async def test_spans_of_a_handler_are_parts_of_its_run(disque_inline: Inline) -> None:
    watched = Watched()

    @watched.tasks.task(name="t", queue="mail")
    async def t() -> None:
        with watched.tracers.get_tracer("app").start_as_current_span("query"):
            pass

    await disque_inline.perform(t)

    spans = {span.name: span for span in watched.spans}
    assert spans["query"].parent == spans["process mail"].get_span_context()
