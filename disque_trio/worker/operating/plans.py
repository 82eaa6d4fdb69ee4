"""What an operation on a cluster will do, and what it has done (`observe.operations`)."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, ClassVar

import attrs

from disque_trio.terminal.escapes import printable_lines

Json = dict[str, Any]


class MistakeError(Exception):
    """Somebody asks for what cannot be. Control characters of names are escaped in its text."""

    def __init__(self, text: str, advice: str = "") -> None:
        super().__init__(text, advice)
        self.text = text
        """Why it cannot be."""
        self.advice = advice
        """What to do instead."""

    def __str__(self) -> str:
        return printable_lines(": ".join(filter(None, [self.text, self.advice])))


class SilentNodeError(MistakeError):
    """The node that is meant does not answer: later the same may be done."""


@attrs.define
class Outcome:
    """What has become of it, node by node, or worker by worker."""

    says: list[str] = attrs.Factory(list)
    failed: list[str] = attrs.Factory(list)
    count: int = 0
    """Jobs, queues, workers or connections that it has changed."""
    unasked: list[str] = attrs.Factory(list)
    """Lines about nodes that did not answer, and so were not asked."""
    details: list[Json] = attrs.Factory(list)
    """The answers of workers, for programs."""


Report = Callable[[str], None]
"""Reports how far it is."""
Run = Callable[[Outcome, Report], Awaitable[None]]
"""Does it; the outcome has what is done even if it is stopped."""


@attrs.frozen(kw_only=True)
class Plan:
    """What will be done. Nothing is changed before `run`."""

    target: str
    """For the log."""
    says: list[str]
    run: Run
    unasked: list[str] = attrs.Factory(list)
    """Of `says`, the lines about nodes that do not answer, and so will not be asked."""
    confirm: str | None = None
    """What a person must type first."""
    risk: str = ""
    """Why whoever asks must be sure, although the operation is usually harmless."""


class Operable:
    """Has the operations of a family as methods, such as `app.admin.queues.pause("mail")`.

    They take the arguments of the table (`observe.operations`), and give the `Outcome`. They raise
    `MistakeError` for what cannot be done, also for what is risky without `is_sure`, and
    `DisqueError`.
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
                raise MistakeError(f"{plan.risk}; give is_sure=True")
            outcome = Outcome(unasked=list(plan.unasked))
            await plan.run(outcome, lambda _: None)
            return outcome

        return run
