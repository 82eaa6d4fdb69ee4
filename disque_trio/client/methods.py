"""The commands as methods of the clients, with the signatures of `commands`."""

from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, get_args

from disque_trio.client.command import Command

Result = TypeVar("Result")
Asked = ParamSpec("Asked")


class Runs(Protocol):
    """A client that waits for the reply without blocking its thread."""

    async def run(self, command: Command[Result]) -> Result:
        """Run a command and return its result."""


class RunsBlocking(Protocol):
    """A client whose thread waits for the reply."""

    def run(self, command: Command[Result]) -> Result:
        """Run a command and return its result."""


def method(
    make: Callable[Asked, Command[Result]],
) -> Callable[Concatenate[Runs, Asked], Coroutine[Any, Any, Result]]:
    """A method that creates a command and runs it."""

    async def run(self: Runs, /, *args: Asked.args, **options: Asked.kwargs) -> Result:
        return await self.run(make(*args, **options))

    return _described(run, make)


def blocking(
    make: Callable[Asked, Command[Result]],
) -> Callable[Concatenate[RunsBlocking, Asked], Result]:
    """The same, for a blocking client."""

    def run(self: RunsBlocking, /, *args: Asked.args, **options: Asked.kwargs) -> Result:
        return self.run(make(*args, **options))

    return _described(run, make)


Method = TypeVar("Method", bound=Callable[..., Any])


def _described(run: Method, make: Callable[..., Any]) -> Method:
    """The method with the name, docstring and parameters of the command, for `help` and editors."""
    described: Any = wraps(make)(run)
    del described.__wrapped__  # it lacks `self`
    asked = signature(make)
    self = Parameter("self", Parameter.POSITIONAL_ONLY)
    described.__signature__ = asked.replace(
        parameters=[self, *asked.parameters.values()],
        return_annotation=get_args(asked.return_annotation)[0],
    )
    return run
