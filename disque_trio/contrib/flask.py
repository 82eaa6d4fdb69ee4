"""Flask: handlers run in the context of the web application, whose configuration names the nodes.

Source: docs/frameworks.md, "Flask".
"""

from typing import Any

from disque_trio.worker import App, Job
from disque_trio.worker.middleware import Inner

try:
    from flask import Flask
except ModuleNotFoundError as missing:
    raise ImportError(
        'disque_trio.contrib.flask needs Flask: pip install "disque-trio[flask]"', name=missing.name
    ) from missing

__all__ = ["Disque", "NoApplicationError"]


class NoApplicationError(RuntimeError):
    """A job runs, but `init_app` was not called with a Flask application."""


class Disque:
    """A Flask extension: `Disque(tasks, web)`, or `init_app(web)` in an application factory.

    Views add jobs of `tasks` by `task.blocking.enqueue(…)`. Workers run them inside
    `web.app_context()`. If there are several applications, the last one applies.
    """

    def __init__(self, tasks: App[Any], web: Flask | None = None) -> None:
        self.tasks = tasks
        self._web: Flask | None = None
        tasks.middleware(self._in_context)
        if web is not None:
            self.init_app(web)

    def init_app(self, web: Flask) -> None:
        """Use this application, and the nodes in `DISQUE_URL` if its configuration has it."""
        if url := web.config.get("DISQUE_URL"):
            self.tasks.use(url)
        web.extensions["disque"] = self
        self._web = web

    async def _in_context(self, job: Job[Any], inner: Inner) -> object:
        if self._web is None:
            raise NoApplicationError(
                f"{job.task} needs a Flask application: call init_app in the module that the "
                "worker imports"
            )
        with self._web.app_context():
            return await inner()
