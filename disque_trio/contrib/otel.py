"""OpenTelemetry: spans of adding and running jobs, and run times of handlers.

The context of the producer is in the headers of the job. A run is a separate span with a link to
it, because a job may run more than once, and hours later. Names follow OpenTelemetry's conventions
for messaging. Source: docs/frameworks.md, "OpenTelemetry".
"""

import contextlib
import logging
import time
from collections.abc import Iterator
from typing import Any, Final

import attrs

from disque_trio.worker import (
    App,
    Job,
    JobDead,
    JobRetried,
    RunEnded,
    describing,
)
from disque_trio.worker.hooks import Adding
from disque_trio.worker.middleware import Inner

try:
    from opentelemetry import metrics, propagate, trace
    from opentelemetry.context import Context
    from opentelemetry.metrics import Counter, Histogram, MeterProvider
    from opentelemetry.trace import (
        INVALID_SPAN,
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

_log: Final = logging.getLogger(__name__)
_NAME: Final = "disque_trio"
_KEY: Final = "messaging.message.conversation_id"
_TASK: Final = "messaging.disque.task"
_OUTCOME: Final = "messaging.disque.outcome"
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
    the span includes that middleware.
    """
    meter = metrics.get_meter(_NAME, meter_provider=meter_provider)
    watch = _Watch(
        trace.get_tracer(_NAME, tracer_provider=tracer_provider),
        meter.create_counter(
            "messaging.client.sent.messages", "{message}", "Jobs that were requested."
        ),
        meter.create_counter(
            "messaging.client.consumed.messages", "{message}", "Jobs whose handlers began."
        ),
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
    consumed: Counter
    durations: Histogram

    def added(self, adding: Adding) -> None:
        """A job is about to be added: put the context of a span into its headers."""
        known = _known(adding.queue, "create")
        with (
            _harmless(),
            self.tracer.start_as_current_span(
                f"create {adding.queue}",
                kind=SpanKind.PRODUCER,
                attributes={**known, _KEY: adding.key, _TASK: adding.task},
            ),
        ):
            propagate.inject(adding.headers)
        with _harmless():
            self.sent.add(1, known)

    async def run(self, job: Job[Any], inner: Inner) -> object:
        """Trace a run of a job. The span ends when the outcome of the job is known."""
        known = _known(job.queue, "process")
        began = time.perf_counter()
        span: Span = INVALID_SPAN
        with _harmless():
            self.consumed.add(1, known)
            span = self.tracer.start_span(
                f"process {job.queue}",
                context=Context(),
                kind=SpanKind.CONSUMER,
                links=_links(job),
                attributes={**known, **_of_job(job)},
            )

        def ended(event: RunEnded) -> None:
            outcome = type(event).__name__.removeprefix("Job").lower()
            about = {**known, _TASK: job.task, _OUTCOME: outcome}
            span.set_attribute(_OUTCOME, outcome)
            if isinstance(event, JobRetried | JobDead):
                about["error.type"] = describing.name_of(type(event.error))
                _note(span, about["error.type"], event.error)
            self.durations.record(time.perf_counter() - began, about)
            span.end()

        job.on_end(ended)
        with trace.use_span(
            span, end_on_exit=False, record_exception=False, set_status_on_exception=False
        ):
            return await inner()


@contextlib.contextmanager
def _harmless() -> Iterator[None]:
    """Log errors of providers, processors and propagators, so that they do not affect jobs."""
    try:
        yield
    except Exception:
        _log.exception("cannot trace a job: OpenTelemetry failed")


def _note(span: Span, kind: str, error: BaseException) -> None:
    """As `Span.record_exception`, which raises if the error has no text."""
    text = describing.escaped(describing.text_of(error))
    details = {
        "exception.type": kind,
        "exception.message": text,
        "exception.stacktrace": describing.escaped(describing.trace_of(error)),
    }
    span.set_attribute("error.type", kind)
    span.add_event("exception", details)
    span.set_status(Status(StatusCode.ERROR, text))


def _known(queue: str, operation: str) -> dict[str, str]:
    """The common attributes of spans and metrics."""
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
    """The link to the span of the producer, if the headers name one."""
    carrier = {name: value for name, value in job.headers.items() if isinstance(value, str)}
    created = trace.get_current_span(propagate.extract(carrier, Context())).get_span_context()
    return [Link(created)] if created.is_valid else []
