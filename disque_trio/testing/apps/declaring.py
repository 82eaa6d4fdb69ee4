"""Declares the app of a plan."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from disque_trio.client.address import Cluster
from disque_trio.sim.scenarios.apps import AppsPlan, AppTask
from disque_trio.testing.apps import handlers
from disque_trio.worker.app import App
from disque_trio.worker.policies import Backoff, Fixed, Policy, Polynomial

MOST_S: Final = 20.0
"""The longest wait of policies that grow."""
RESULT_TTL_S: Final = 600
NONSENSE: Final[tuple[Any, ...]] = ("soon", timedelta(seconds=1), -1.0, float("nan"), object())


def declared(plan: AppsPlan, cluster: Cluster) -> App[Any]:
    """The app of a plan."""
    app: App[Any] = App(cluster)
    crons = {each.task: each for each in plan.crons}
    for place, task in enumerate(plan.tasks):
        if task.name in crons:
            due = app.task(name=task.name, queue=task.queue)(handlers.on_tick)
            app.cron(every=crons[task.name].every_s)(due)
        elif task.is_consumer:
            more: Any = {} if task.timeout_s is None else {"timeout": task.timeout_s}
            policy, most = policy_of(task, place), task.max_crashes
            app.consumer(task.queue, retry=policy, max_crashes=most, **more)(handlers.body)
        else:
            fn: Any = handlers.in_loop if task.executor == "loop" else handlers.elsewhere
            app.task(**_options(task, place))(fn)
    return app


def _options(task: AppTask, place: int) -> Any:
    options: dict[str, Any] = {
        "name": task.name,
        "queue": task.queue,
        "retry": policy_of(task, place),
        "lease": task.lease_s,
        "max_crashes": task.max_crashes,
    }
    if task.executor != "loop":
        options["executor"] = task.executor
    if task.timeout_s is not None:
        options["timeout"] = task.timeout_s
    if task.priority is not None:
        options["priority"] = task.priority
    if task.conflict:
        options["on_conflict"] = task.conflict
        if task.keep_s:
            options["unique_for"] = task.keep_s
    if task.has_result:
        options["result_ttl"] = RESULT_TTL_S
    return options


def policy_of(task: AppTask, place: int) -> Policy | Callable[[Any, BaseException], Any]:
    """The retry policy of a task."""
    wait, attempts = task.wait_s, task.attempts

    def function(job: Any, _: BaseException) -> float | None:
        return wait if job.attempt < attempts else None

    def raises(_: Any, __: BaseException) -> float:
        raise ZeroDivisionError("as planned")

    def nonsense(_: Any, __: BaseException) -> Any:
        return NONSENSE[place % len(NONSENSE)]

    match task.policy:
        case "fixed":
            return Fixed((wait,) * (attempts - 1))
        case "backoff":
            return Backoff(attempts=attempts, base=wait, most=MOST_S)
        case "polynomial":
            return Polynomial(attempts=attempts, base=wait, power=2, most=MOST_S)
    return {"function": function, "raises": raises, "nonsense": nonsense}[task.policy]
