"""Runs Django tasks in a worker: finds the function, creates its context, and sends the signals."""

import logging
import os
import socket
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import sniffio
from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.utils import timezone
from django.utils.module_loading import import_string

from disque_trio.contrib.django import api
from disque_trio.worker import Dead, Job, codec


def result_of(
    task: Any, key: str, args: Sequence[Any], kwargs: Mapping[str, Any], **more: Any
) -> Any:
    """The `TaskResult` of a job, with the key of the job as its id."""
    known = {
        "status": api.base.TaskResultStatus.READY,
        "enqueued_at": timezone.now(),
        "started_at": None,
        "last_attempted_at": None,
        "finished_at": None,
        "errors": [],
        "worker_ids": [],
    }
    return api.base.TaskResult(
        task=task,
        id=key,
        args=list(args),
        kwargs=dict(kwargs),
        backend=task.backend,
        **{**known, **more},
    )


def perform(job: Job[Any], path: str, alias: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Run a function, in a thread of the worker. Returns the record that `results` reads."""
    run = _Run(job, path, alias, args, kwargs)
    close_old_connections()
    try:
        run.began()
        try:
            value = run.kept(run.task.func(*run.args, **kwargs))
        except BaseException as error:
            run.ended(error)
            raise
        run.ended()
        return run.record(value)
    finally:
        close_old_connections()


async def perform_async(
    job: Job[Any], path: str, alias: str, args: list[Any], kwargs: dict[str, Any]
) -> Any:
    """Run a coroutine function, in the event loop. Django's asynchronous code needs asyncio."""
    if sniffio.current_async_library() != "asyncio":
        raise Dead(f"{path} needs asyncio: start the worker with --loop asyncio")
    run = _Run(job, path, alias, args, kwargs)
    in_thread: Callable[..., Callable[..., Awaitable[None]]] = sync_to_async
    await in_thread(close_old_connections)()
    try:
        await in_thread(run.began)()
        try:
            value = run.kept(await run.task.func(*run.args, **kwargs))
        except Exception as error:
            await in_thread(run.ended)(error)
            raise
        await in_thread(run.ended)()
        return run.record(value)
    finally:
        await in_thread(close_old_connections)()


class _Run:
    """One run of a task. Raises `Dead` if the task does not exist."""

    def __init__(
        self, job: Job[Any], path: str, alias: str, args: list[Any], kwargs: dict[str, Any]
    ) -> None:
        try:
            found = import_string(path)
        except ImportError as error:
            raise Dead(f"there is no task {path}: {error}") from error
        if not isinstance(found, api.base.Task):
            raise Dead(f"{path} is not a task: decorate it with @task")
        self.task = found.using(queue_name=job.queue, backend=alias)
        # The workers of earlier attempts are unknown; Django counts attempts by this list.
        self._workers = [f"{socket.gethostname()}-{os.getpid()}"] * job.attempt
        self._path, self._now = path, timezone.now()
        self._job, self._args, self._kwargs = job, args, kwargs
        self.args: list[Any] = args
        if found.takes_context:
            self.args = [api.base.TaskContext(task_result=self._result("RUNNING")), *args]

    def began(self) -> None:
        """Send Django's signal for the start."""
        self._send(api.signals.task_started, self._result("RUNNING"))

    def ended(self, error: BaseException | None = None) -> None:
        """Send Django's signal for the end. A failed run may not be the last one."""
        errors = [] if error is None else [_error(error)]
        status = "SUCCESSFUL" if error is None else "FAILED"
        result = self._result(status, finished_at=timezone.now(), errors=errors)
        self._send(api.signals.task_finished, result)
        # Django's own receiver has logged the error; the worker logs when the task is retried.
        self._job.run.is_traced = api.LOGGER.isEnabledFor(logging.ERROR)

    def kept(self, value: Any) -> Any:
        """The return value as JSON, if it is requested. Raises `TypeError` if it cannot be
        encoded."""
        return codec.plain(value) if "result_ttl" in self._job.headers else None

    def record(self, value: Any) -> dict[str, Any]:
        """The record that nodes keep. It includes the call, because the job no longer exists
        then."""
        return {
            "path": self._path,
            "alias": self.task.backend,
            "args": self._args,
            "kwargs": self._kwargs,
            "value": value,
            "started": self._now.timestamp(),
            "finished": timezone.now().timestamp(),
            "workers": self._workers,
        }

    def _result(self, status: str, **more: Any) -> Any:
        return result_of(
            self.task,
            self._job.key or self._job.id,
            self._args,
            self._kwargs,
            status=api.base.TaskResultStatus(status),
            started_at=self._now,
            last_attempted_at=self._now,
            worker_ids=self._workers,
            **more,
        )

    def _send(self, signal: Any, result: Any) -> None:
        signal.send(type(self.task.get_backend()), task_result=result)


def _error(error: BaseException) -> Any:
    kind = type(error)
    return api.base.TaskError(
        exception_class_path=f"{kind.__module__}.{kind.__qualname__}",
        traceback="".join(traceback.format_exception(error)),
    )
