"""Hooks of users: functions that are called before a job is added, and for events.

Errors of a hook do not affect jobs, except before a job is added.
"""

import logging
from collections.abc import Callable, Sequence
from inspect import iscoroutinefunction
from typing import Any, Final

import attrs

from disque_trio.worker.checks import shown
from disque_trio.worker.describing import describe
from disque_trio.worker.events import Event, JobEnqueued
from disque_trio.worker.kinds import takes
from disque_trio.worker.options import OWN_HEADERS
from disque_trio.worker.repeats import Repeats, write_with_traceback
from disque_trio.worker.runtime import runtime

_log: Final = logging.getLogger("disque_trio.worker.hooks")
_Call = Callable[[Any], object]


@attrs.define
class Adding:
    """A job that is about to be added, for the hooks of `App.on_enqueue`. A hook may change `key`
    and `headers`."""

    task: str
    queue: str
    key: str
    headers: dict[str, Any]
    """The headers, which handlers receive as `job.headers`."""

    def check(self) -> None:
        """Raise `ValueError` if a hook has set an invalid key or header."""
        if not isinstance(self.key, str):
            raise ValueError(f"a hook has set key={shown(self.key)}: it must be text")
        if not isinstance(self.headers, dict) or not all(
            isinstance(each, str) for each in self.headers
        ):
            raise ValueError(f"a hook has set headers={shown(self.headers)}: each needs a name")
        if own := sorted(OWN_HEADERS & self.headers.keys()):
            raise ValueError(
                f"a hook has set header {', '.join(own)}: the library sets it; use another name"
            )


AddingHook = Callable[[Adding], object]


@attrs.frozen(eq=False)
class Hook:
    """A function, and the classes of events that it is called with."""

    fn: _Call
    kinds: tuple[type[Event], ...]

    def accepts(self, kind: type[Event]) -> bool:
        """Is it called with events of this class?"""
        return issubclass(kind, self.kinds)

    def call(self, event: Event, repeats: Repeats) -> None:
        """Call a `def` hook. Never raises."""
        try:
            self.fn(event)
        except BaseException as error:
            self.failed(event, error, repeats)

    def failed(self, event: Event, error: BaseException, repeats: Repeats) -> None:
        """Log the error of the hook, at most once per hook and minute."""
        more = repeats.due(f"{id(self)}", runtime().monotonic())
        if more is not None:
            text = "hook %s failed for %s: %s%s"
            args = shown(self.fn), type(event).__name__, describe(error), more
            write_with_traceback(_log, logging.ERROR, text, args, error)


@attrs.define(eq=False)
class Hooks:
    """The hooks of an app."""

    adding: list[AddingHook] = attrs.Factory(list)
    """Called before a job is added."""
    declared: list[Hook] = attrs.Factory(list)
    _of_producers: list[Hook] = attrs.Factory(list)
    _repeats: Repeats = attrs.Factory(Repeats)

    def declare(self, fn: Any, kinds: Sequence[Any]) -> None:
        """Add a hook. Raises `ValueError` if it cannot be called with such an event."""
        if not kinds or not all(
            isinstance(each, type) and issubclass(each, Event) for each in kinds
        ):
            raise ValueError(f"on({', '.join(map(shown, kinds))}): name classes of events")
        if not takes(fn, 1):
            raise ValueError(f"hook {shown(fn)} must be a function of one argument")
        hook = Hook(fn, tuple(kinds))
        if hook.accepts(JobEnqueued):
            if iscoroutinefunction(fn):
                raise ValueError(
                    f"hook {shown(fn)} must be a `def`, because threads also add jobs (JobEnqueued)"
                )
            self._of_producers.append(hook)
        self.declared.append(hook)

    @property
    def wants_enqueued(self) -> bool:
        """Is any hook called with `JobEnqueued`?"""
        return bool(self._of_producers)

    def before_adding(self, adding: Adding) -> None:
        """Call the hooks of a job that is about to be added. Raises `ValueError`, and errors of the
        hooks."""
        for hook in self.adding:
            hook(adding)
            adding.check()

    def enqueued(self, event: JobEnqueued) -> None:
        """Call the hooks of a job that this process has added. Never raises."""
        for hook in self._of_producers:
            hook.call(event, self._repeats)
