"""The plan and the outcome of an operation on a cluster (`observe.operations`)."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, ClassVar

import attrs

from disque_trio.terminal.escapes import printable_lines

Json = dict[str, Any]


class MistakeError(Exception):
    """A request that cannot be carried out. Control characters of names are escaped in its text."""

    def __init__(self, text: str, advice: str = "") -> None:
        super().__init__(text, advice)
        self.text = text
        """Why it cannot be carried out."""
        self.advice = advice
        """What to do instead."""

    def __str__(self) -> str:
        return printable_lines(": ".join(filter(None, [self.text, self.advice])))


class SilentNodeError(MistakeError):
    """The node that is required does not answer; the same request may succeed later."""


@attrs.define
class Outcome:
    """The outcome of an operation, by node or by worker."""

    says: list[str] = attrs.Factory(list)
    failed: list[str] = attrs.Factory(list)
    count: int = 0
    """The number of jobs, queues, workers or connections that the operation has changed."""
    unasked: list[str] = attrs.Factory(list)
    """Lines about nodes that did not answer, so the operation does not include them."""
    details: list[Json] = attrs.Factory(list)
    """The answers of workers, for programs."""


Report = Callable[[str], None]
"""Reports the progress of an operation."""
Run = Callable[[Outcome, Report], Awaitable[None]]
"""Carries out an operation. The outcome contains what was done even if it is cancelled."""


@attrs.frozen(kw_only=True)
class Plan:
    """What an operation will do. Nothing is changed before `run`."""

    target: str
    """The target of the operation, for the log."""
    says: list[str]
    run: Run
    unasked: list[str] = attrs.Factory(list)
    """The lines of `says` about nodes that do not answer, so the operation will not include
    them."""
    confirm: str | None = None
    """The text that an operator must type first; None for none."""
    risk: str = ""
    """Why the operation needs a confirmation, although it is usually harmless; empty if it needs
    none."""


class Operable:
    """Has the operations of a family as methods, such as `app.admin.queues.pause("mail")`.

    They take the arguments in the table (`observe.operations`), and return the `Outcome`. They
    raise `MistakeError` for a request that cannot be carried out, or that is risky and lacks
    `is_sure`, `TypeError` for other arguments, and errors of the client.
    """

    __slots__ = ()
    FAMILY: ClassVar[str]
    client: Any

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Outcome]]:
        table: Any = import_module("disque_trio.observe.operations")
        operation = table.OPERATIONS.get(f"{self.FAMILY} {name}")
        if operation is None:
            raise AttributeError(f"{type(self).__name__} has no '{name}'")

        async def run(*values: object, is_sure: bool = False, **more: object) -> Outcome:
            names = [each.name for each in operation.arguments]
            if len(values) > len(names) or more.keys() - set(names[len(values) :]):
                raise TypeError(f"{self.FAMILY} {name} takes {', '.join(names)}")
            plan = await operation.planned(
                self.client, table.fields_of({**dict(zip(names, values, strict=False)), **more})
            )
            if plan.risk and not is_sure:
                raise MistakeError(f"{plan.risk}; pass is_sure=True to confirm")
            outcome = Outcome(unasked=list(plan.unasked))
            await plan.run(outcome, lambda _: None)
            return outcome

        return run
