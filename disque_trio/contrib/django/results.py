"""What nodes know of a job, and keep of it, as Django's `get_result` shows it."""

import builtins
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from django.utils.module_loading import import_string

from disque_trio.contrib.django import api
from disque_trio.contrib.django.performing import result_of
from disque_trio.worker import (
    App,
    BlockingJobHandle,
    JobFailedError,
    JobStatus,
    NoResultError,
    Task,
)
from disque_trio.worker.envelope import read
from disque_trio.worker.operating.asking import InSteps, finished
from disque_trio.worker.operating.jobs import Jobs

_STATUSES: Final[Mapping[str, str]] = {"leased": "RUNNING", "dead": "FAILED", "done": "SUCCESSFUL"}
"""By state; that of any other job is READY."""


def result_by(app: App[Any], task: Task[..., Any], handle: BlockingJobHandle, key: str) -> Any:
    """The result of a job of one of the backend's tasks. Raises `TaskResultDoesNotExist`."""
    status = handle.status()
    record = _kept(handle) if status.state == "done" else _called(app, task, handle.id)
    if record is None:
        raise missing(key)
    began = _time(record.get("started") or status.since)
    found = result_of(
        import_string(record["path"]).using(
            queue_name=task.definition.options.queue, backend=record["alias"]
        ),
        key,
        record["args"],
        record["kwargs"],
        status=api.base.TaskResultStatus(_STATUSES.get(status.state, "READY")),
        enqueued_at=_time(status.added_at),
        started_at=began,
        last_attempted_at=began,
        finished_at=_time(record.get("finished") or status.ended_at),
        errors=_errors(status),
        worker_ids=list(record.get("workers") or filter(None, [status.worker])),
    )
    object.__setattr__(found, "_return_value", record.get("value"))
    return found


def missing(key: str) -> Exception:
    """No node knows the job, or its result."""
    error: Exception = api.exceptions.TaskResultDoesNotExist(key)
    return error


def _kept(handle: BlockingJobHandle) -> Mapping[str, Any] | None:
    try:
        kept: Mapping[str, Any] = handle.result(0)
    except (NoResultError, JobFailedError):  # an operator has acknowledged it, for example
        return None
    return kept


def _called(app: App[Any], task: Task[..., Any], id: str) -> Mapping[str, Any] | None:
    """What a job that has not succeeded was enqueued with; None if it is gone."""
    found = finished(Jobs(InSteps(app.blocking.client)).find(id))
    for copy in found.items:
        body = app.codecs.decoded(copy.job.body or b"")
        (path, alias, args, kwargs), _ = task.arguments.unpack(read(body, app.codecs.longest))
        return {"path": path, "alias": alias, "args": args, "kwargs": kwargs}
    return None


def _time(unix: float | None) -> datetime | None:
    return None if unix is None else datetime.fromtimestamp(unix, UTC)


def _errors(status: JobStatus) -> list[Any]:
    """Nodes have the last error only."""
    if status.error is None or status.state == "done":
        return []
    kind = status.error.kind
    path = f"builtins.{kind}" if hasattr(builtins, kind) else kind
    return [api.base.TaskError(exception_class_path=path, traceback=status.error.traceback)]
