"""The backend for `TASKS`: each Django task becomes a job in one of the backend's queues."""

from collections.abc import Mapping
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from disque_trio.client.settings import DEFAULT_URL
from disque_trio.contrib.django import api, results
from disque_trio.contrib.django.performing import perform, perform_async, result_of
from disque_trio.contrib.outbox import django as outbox
from disque_trio.worker import App
from disque_trio.worker.options import AppOptions
from disque_trio.worker.runtime import runtime
from disque_trio.worker.task import Task

OPTIONS: Final = AppOptions.__annotations__.keys() - {"queue"}
"""The options of `App` that a backend accepts for all its tasks; Django sets the queues. In
addition `url` names the nodes, and `outbox` a database."""


class Backend(api.backends.BaseTaskBackend):
    """`TASKS = {"default": {"BACKEND": "disque_trio.contrib.django.Backend", "OPTIONS": {…}}}`.

    Jobs are added immediately. Within a transaction use `transaction.on_commit`, or the option
    `outbox`, which names the database whose transaction adds them. With the option `result_ttl`
    nodes keep results for this many seconds, for `get_result`. Raises `ImproperlyConfigured` for
    invalid options.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = False
    supports_priority = True

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        super().__init__(alias, params)
        options = {"url": DEFAULT_URL, **self.options}
        self._outbox = options.pop("outbox", None)
        if unknown := sorted(options.keys() - OPTIONS - {"url"}):
            known = ", ".join(sorted({"url", "outbox"} | OPTIONS))
            raise ImproperlyConfigured(
                f"TASKS[{alias!r}]: OPTIONS has {', '.join(unknown)}; there are {known}"
            )
        self._result_ttl = options.get("result_ttl")
        self.supports_get_result = self._result_ttl is not None
        if self.supports_get_result and not self.queues:
            raise ImproperlyConfigured(
                f"TASKS[{alias!r}]: result_ttl needs QUEUES: results are searched there"
            )
        self._tasks: dict[tuple[str, bool], Task[..., Any]] = {}
        try:
            self.app: App[None] = App(**options)
            for queue in sorted(self.queues) or ["default"]:
                self._declare(queue)
        except (TypeError, ValueError) as error:
            raise ImproperlyConfigured(f"TASKS[{alias!r}]: {error}") from error

    def _declare(self, queue: str) -> None:
        """Declare the two tasks of a queue: functions run in threads, coroutines in the event
        loop."""
        for is_async, run in ((False, perform), (True, perform_async)):
            name = f"django.{self.alias}.{queue}{'.async' if is_async else ''}"
            declare: Any = partial(self.app.task, name=name, queue=queue, bind=True)
            self._tasks[queue, is_async] = declare()(run)

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Add a job, and return its `TaskResult`. Raises errors of the client, such as
        `NoNodeError`, and `EnqueueUnknownError`."""
        self.validate_task(task)
        known = result_of(task, "", args, kwargs)  # rejects values that are not JSON
        is_async = iscoroutinefunction(task.func)
        name = task.queue_name if (task.queue_name, is_async) in self._tasks else self._any_queue
        prepared = self._tasks[name, is_async].using(**_options(task), **self._findable())
        call = task.module_path, self.alias, known.args, known.kwargs
        if self._outbox is None:
            key = prepared.blocking.enqueue(*call).key
        else:
            [key] = outbox.add(prepared.call(*call), using=self._outbox)
        result = result_of(task, key, args, kwargs)
        api.signals.task_enqueued.send(type(self), task_result=result)
        return result

    async def aenqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """As `enqueue`, in a thread, because receivers of signals may block."""
        return await sync_to_async(self.enqueue, thread_sensitive=True)(task, args, kwargs)

    def get_result(self, result_id: str) -> Any:
        """The state of a job, and its result. Raises `TaskResultDoesNotExist` if no node has the
        job or its result, and errors of the client."""
        if not self.supports_get_result:
            return super().get_result(result_id)
        for task in self._tasks.values() if result_id else ():
            handle = task.blocking.find(result_id)
            if handle is not None:
                return results.result_by(self.app, task, handle, result_id)
        raise results.missing(result_id)

    def _findable(self) -> dict[str, Any]:
        """The options of a job that can be found by its key."""
        if self._result_ttl is None:
            return {}
        key = runtime().new_key()
        return {"key": key, "unique": key, "unique_for": self._result_ttl}

    @property
    def _any_queue(self) -> str:
        """A declared queue for tasks of other queues: with `QUEUES: []` every queue is allowed, and
        the same functions run all tasks."""
        return min(queue for queue, _ in self._tasks)


def _options(task: Any) -> Any:
    """Django's options of one task, as options of `Task.using`."""
    options: dict[str, Any] = {"queue": task.queue_name}
    if task.priority:
        options["priority"] = task.priority
    if task.run_after is not None:
        after = task.run_after
        options["at"] = after if timezone.is_aware(after) else timezone.make_aware(after)
    return options
