"""The state and result of a job, as Django's `get_result` returns them."""

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
"""Django's status by state; READY for other states."""


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
    """The error if no node has the job or its result."""
    error: Exception = api.exceptions.TaskResultDoesNotExist(key)
    return error


def _kept(handle: BlockingJobHandle) -> Mapping[str, Any] | None:
    try:
        kept: Mapping[str, Any] = handle.result(0)
    except (NoResultError, JobFailedError):  # for example, an operator has acknowledged it
        return None
    return kept


def _called(app: App[Any], task: Task[..., Any], id: str) -> Mapping[str, Any] | None:
    """The call of a job that has not succeeded; None if the job is gone."""
    found = finished(Jobs(InSteps(app.blocking.client)).find(id))
    for copy in found.items:
        body = app.codecs.decoded(copy.job.body or b"")
        (path, alias, args, kwargs), _ = task.arguments.unpack(read(body, app.codecs.longest))
        return {"path": path, "alias": alias, "args": args, "kwargs": kwargs}
    return None


def _time(unix: float | None) -> datetime | None:
    return None if unix is None else datetime.fromtimestamp(unix, UTC)


def _errors(status: JobStatus) -> list[Any]:
    """The last error; nodes keep no earlier ones."""
    if status.error is None or status.state == "done":
        return []
    kind = status.error.kind
    path = f"builtins.{kind}" if hasattr(builtins, kind) else kind
    return [api.base.TaskError(exception_class_path=path, traceback=status.error.traceback)]
