"""Sentry: errors of jobs with their task, id and attempt; traces from the producer to the run.

Bodies and arguments are not sent. Source: docs/frameworks.md, "Sentry".
"""

from typing import Any, Final, Literal

import attrs

from disque_trio.worker import (
    App,
    BadBodyError,
    Cancel,
    Job,
    JobDead,
    JobRetried,
    NewerBodyError,
    RunEnded,
    Snooze,
)
from disque_trio.worker.handler import CrashedError, UnknownTaskError
from disque_trio.worker.hooks import Adding
from disque_trio.worker.middleware import Inner

try:
    import sentry_sdk
    from sentry_sdk.scope import add_global_event_processor, use_isolation_scope, use_scope
except ModuleNotFoundError as missing:
    raise ImportError(
        'disque_trio.contrib.sentry needs sentry-sdk: pip install "disque-trio[sentry]"',
        name=missing.name,
    ) from missing

__all__ = ["Errors", "instrument"]

Errors = Literal["final", "all"]
"""Which failures are sent: those that make a job dead, or every failed attempt."""

_ORIGIN: Final = "auto.queue.disque_trio"
_LOG: Final = "disque_trio.worker.jobs"
_LINES: Final = ("dead: ", "dead without a run: ", "failed, retry in ")
"""Log lines about failures, which are sent separately with more details."""
_UNREAD: Final = (BadBodyError, CrashedError, NewerBodyError, UnknownTaskError)
_HEADERS: Final = ("sentry-trace", "baggage")
_is_declared: Final[list[bool]] = []


def instrument(tasks: App[Any], *, errors: Errors = "final") -> None:
    """Send failures of the jobs of an app, and continue traces. Call it in the module of the tasks,
    before other middleware is declared; `sentry_sdk.init` may be called before or after. Raises
    `ValueError` for another value of `errors`."""
    if errors not in ("final", "all"):
        raise ValueError(f"errors={errors!r} must be 'final' or 'all'")
    if not _is_declared:
        _is_declared.append(True)
        add_global_event_processor(_process)
    watch = _Watch(errors)
    tasks.on_enqueue(watch.added)
    tasks.middleware(watch.run)
    tasks.on(JobDead)(watch.unread)


@attrs.frozen
class _Watch:
    errors: Errors

    def added(self, adding: Adding) -> None:
        """A job is about to be added: put the context of the trace into its headers."""
        known = {"queue": adding.queue, "key": adding.key}
        sentry_sdk.add_breadcrumb(category="disque", message=f"enqueue {adding.task}", data=known)
        with sentry_sdk.start_span(op="queue.publish", name=adding.task, origin=_ORIGIN) as span:
            span.set_data("messaging.system", "disque")
            span.set_data("messaging.message.id", adding.key)
            span.set_data("messaging.destination.name", adding.queue)
            values = sentry_sdk.get_traceparent(), sentry_sdk.get_baggage()
            pairs = zip(_HEADERS, values, strict=True)
            adding.headers.update({name: value for name, value in pairs if value})

    async def run(self, job: Job[Any], inner: Inner) -> object:
        """Run a job in a separate scope."""
        order: BaseException | None = None
        with sentry_sdk.isolation_scope() as scope:
            scope.clear_breadcrumbs()
            scope.set_tags({"disque.task": job.task, "disque.queue": job.queue})
            scope.set_context("disque job", _known(job))
            headers = {name: job.headers[name] for name in _HEADERS if name in job.headers}
            trace = sentry_sdk.continue_trace(
                headers, op="queue.process", name=job.task, source="task", origin=_ORIGIN
            )
            inside = sentry_sdk.get_current_scope()

            def ended(event: RunEnded) -> None:
                is_sent = isinstance(event, JobDead) or self.errors == "all"
                if isinstance(event, JobDead | JobRetried) and is_sent:
                    scope.set_tag("disque.outcome", _outcome(event))
                    with use_isolation_scope(scope), use_scope(inside):
                        sentry_sdk.capture_exception(event.error)

            job.on_end(ended)
            with sentry_sdk.start_transaction(trace) as span:
                span.set_data("messaging.system", "disque")
                span.set_data("messaging.message.id", job.key or job.id)
                span.set_data("messaging.destination.name", job.queue)
                span.set_data("messaging.message.retry.count", job.attempt - 1)
                try:
                    return await inner()
                except (Cancel, Snooze) as raised:  # the span would count them as failures
                    order = raised
        raise order

    def unread(self, event: JobDead) -> None:
        """A job is dead, and its handler was never called."""
        if isinstance(event.error, _UNREAD):
            with sentry_sdk.isolation_scope() as scope:
                scope.set_tags({"disque.task": event.task, "disque.queue": event.queue})
                scope.set_tag("disque.outcome", "dead")
                known = {"id": event.id, "key": event.key, "attempt": event.attempt}
                scope.set_context("disque job", {"task": event.task, **known})
                sentry_sdk.capture_exception(event.error)


def _outcome(event: RunEnded) -> str:
    return "dead" if isinstance(event, JobDead) else "retried"


def _known(job: Job[Any]) -> dict[str, Any]:
    return {
        "task": job.task,
        "id": job.id,
        "key": job.key,
        "queue": job.queue,
        "attempt": job.attempt,
        "delivery": job.delivery,
        "node": job.node,
    }


def _process(event: Any, _hint: Any) -> Any:
    """Drop log lines that repeat an error, and variables of this library's functions, which contain
    bodies and arguments."""
    text = (event.get("logentry") or {}).get("message") or ""
    if event.get("logger") == _LOG and text.startswith(_LINES):
        return None
    for error in (event.get("exception") or {}).get("values") or ():
        for frame in (error.get("stacktrace") or {}).get("frames") or ():
            if (frame.get("module") or "").startswith("disque_trio."):
                frame.pop("vars", None)
    return event
