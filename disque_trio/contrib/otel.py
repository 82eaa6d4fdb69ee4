"""OpenTelemetry: spans of adding and of running jobs, and how long handlers take.

The context of the producer travels in the headers of the job. A run is a span of its own with a
link to it, because a job may run more than once, and hours later. Names follow OpenTelemetry's
conventions for messaging. Source: docs/frameworks.md, "OpenTelemetry".
"""

import time
from typing import Any, Final

import attrs

from disque_trio.worker import App, Cancel, Job, Snooze, describing
from disque_trio.worker.deciding import failure, is_interrupted
from disque_trio.worker.engine.records import Reason
from disque_trio.worker.enqueue import Adding
from disque_trio.worker.exceptions import JobTimeoutError
from disque_trio.worker.middleware import Inner

try:
    from opentelemetry import metrics, propagate, trace
    from opentelemetry.context import Context
    from opentelemetry.metrics import Counter, Histogram, MeterProvider
    from opentelemetry.trace import (
        Link,
        Span,
        SpanKind,
        Status,
        StatusCode,
        Tracer,
        TracerProvider,
    )
except ModuleNotFoundError as missing:
    raise ImportError(
        'disque_trio.contrib.otel needs opentelemetry-api: pip install "disque-trio[otel]"',
        name=missing.name,
    ) from missing

__all__ = ["instrument"]

_NAME: Final = "disque_trio"
_KEY: Final = "messaging.message.conversation_id"
_TASK: Final = "messaging.disque.task"
BUCKETS_S: Final = (
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
)  # fmt: skip


def instrument(
    tasks: App[Any],
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> None:
    """Trace and measure the jobs of an app, where it adds them and where a worker runs them.

    Without providers the global ones are used. Call it before other middleware is declared, so that
    what that does is part of the span.
    """
    meter = metrics.get_meter(_NAME, meter_provider=meter_provider)
    watch = _Watch(
        trace.get_tracer(_NAME, tracer_provider=tracer_provider),
        meter.create_counter("messaging.client.sent.messages", "{message}", "Jobs to be added."),
        meter.create_histogram(
            "messaging.process.duration",
            "s",
            "How long handlers run.",
            explicit_bucket_boundaries_advisory=BUCKETS_S,
        ),
    )
    tasks.on_enqueue(watch.added)
    tasks.middleware(watch.run)


@attrs.frozen
class _Watch:
    tracer: Tracer
    sent: Counter
    durations: Histogram

    def added(self, adding: Adding) -> None:
        """A job is about to be added: its headers get the context of a span that tells so."""
        known = _known(adding.queue, "create")
        own = {
            "messaging.message.conversation_id": adding.key,
            "messaging.disque.task": adding.task,
        }
        with self.tracer.start_as_current_span(
            f"create {adding.queue}", kind=SpanKind.PRODUCER, attributes={**known, **own}
        ):
            propagate.inject(adding.headers)
        self.sent.add(1, known)

    async def run(self, job: Job[Any], inner: Inner) -> object:
        """A run of a job."""
        known = _known(job.queue, "process")
        began = time.perf_counter()
        with self.tracer.start_as_current_span(
            f"process {job.queue}",
            context=Context(),
            kind=SpanKind.CONSUMER,
            links=_links(job),
            attributes={**known, **_of_job(job)},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                return await inner()
            except BaseException as error:  # of a middleware around handlers of users
                if (kind := _failure(job, error)) is not None:
                    known = {**known, "error.type": kind}
                    _note(span, kind, error)
                raise
            finally:
                self.durations.record(time.perf_counter() - began, known)


def _failure(job: Job[Any], error: BaseException) -> str | None:
    """The name of a failure; None for an order, such as `Snooze`, and for the end of a run that
    belongs to this worker no more."""
    why, parts = job.run.why, describing.leaves(error)
    if why is Reason.TOO_LONG and failure(error) is None:
        return JobTimeoutError.__qualname__
    if why not in (None, Reason.TOO_LONG) or is_interrupted(job.run, error):
        return None
    if all(describing.is_of(each, (Snooze, Cancel)) for each in parts):
        return None
    return describing.name_of(type(error))


def _note(span: Span, kind: str, error: BaseException) -> None:
    """As `Span.record_exception`, which raises if the error cannot say what it is."""
    text = describing.escaped(describing.text_of(error))
    told = {
        "exception.type": kind,
        "exception.message": text,
        "exception.stacktrace": describing.escaped(describing.trace_of(error)),
    }
    span.set_attribute("error.type", kind)
    span.add_event("exception", told)
    span.set_status(Status(StatusCode.ERROR, text))


def _known(queue: str, operation: str) -> dict[str, str]:
    """What spans and metrics have in common."""
    return {
        "messaging.system": "disque",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": queue,
    }


def _of_job(job: Job[Any]) -> dict[str, str | int]:
    return {
        "messaging.message.id": job.id,
        _KEY: job.key or job.id,
        _TASK: job.task,
        "messaging.disque.attempt": job.attempt,
        "messaging.disque.delivery": job.delivery,
        "server.address": job.node,
    }


def _links(job: Job[Any]) -> list[Link]:
    """To the span of the producer, if the headers name one."""
    carrier = {name: value for name, value in job.headers.items() if isinstance(value, str)}
    created = trace.get_current_span(propagate.extract(carrier, Context())).get_span_context()
    return [Link(created)] if created.is_valid else []
