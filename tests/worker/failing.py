"""Errors of every kind that a handler may raise, and what else it may do to its worker."""

import asyncio
import contextlib
from typing import Any, Final, NoReturn

import anyio
import sniffio

from disque_trio.worker.exceptions import Retry


class OwnBaseError(BaseException):
    """Not below Exception."""


class NoTextError(Exception):
    """Its text raises."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class NoneTextError(Exception):
    """Its text is none."""

    def __str__(self) -> str:
        return None  # type: ignore[return-value]  # noqa: PLE0307

    __repr__ = __str__


class LeavingTextError(Exception):
    """Its text ends the process."""

    def __str__(self) -> str:
        raise SystemExit(3)

    __repr__ = __str__


class OddText(str):
    """Text that cannot be cut, or written."""

    __slots__ = ()

    def __getitem__(self, _: Any) -> NoReturn:
        raise RuntimeError("not cut")

    def encode(self, *_: Any, **__: Any) -> NoReturn:
        """It cannot."""
        raise RuntimeError("not encoded")


class OddTextError(Exception):
    """Its text is of such a class."""

    def __str__(self) -> str:
        return OddText("odd")


class NoClassError(Exception):
    """It does not say what it is."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError("no class")


class NoCauseError(Exception):
    """It does not say what it was raised from."""

    @property
    def _nothing(self) -> NoReturn:
        raise RuntimeError("no cause")

    __cause__ = __context__ = __suppress_context__ = _nothing


class OddRetry(Retry):
    """It asks for no time."""

    @property
    def after(self) -> NoReturn:
        """None."""
        raise RuntimeError("no time")

    @after.setter
    def after(self, _: object) -> None: ...


class UnsplitGroup(ExceptionGroup[Exception]):
    """A group that nothing can be taken out of."""

    def derive(self, _: Any) -> NoReturn:
        """It cannot."""
        raise RuntimeError("not split")


class NotPickledError(Exception):
    """It cannot be brought from one process to another."""

    def __init__(self, text: str, other: object) -> None:
        super().__init__(text)
        self.other = other

    def __reduce__(self) -> NoReturn:
        raise TypeError("not pickled")


def untraceable() -> SyntaxError:
    """An error whose traceback cannot be formatted."""
    where: Any = ("f", "x", "y", 3)
    return SyntaxError("no", where)


ERRORS: Final[dict[str, Any]] = {
    "ValueError": lambda: ValueError("no"),
    "own BaseException": lambda: OwnBaseError("no"),
    "GeneratorExit": GeneratorExit,
    "StopIteration": lambda: StopIteration(1),
    "StopAsyncIteration": StopAsyncIteration,
    "KeyboardInterrupt": KeyboardInterrupt,
    "SystemExit": lambda: SystemExit(3),
    "CancelledError": asyncio.CancelledError,
    "MemoryError": MemoryError,
    "text raises": NoTextError,
    "text is None": NoneTextError,
    "text leaves": LeavingTextError,
    "odd text": OddTextError,
    "huge text": lambda: ValueError("x" * 5_000_000),
    "surrogates": lambda: ValueError("\ud800"),
    "no class": NoClassError,
    "no cause": NoCauseError,
    "odd retry": OddRetry,
    "no traceback": untraceable,
    "not pickled": lambda: NotPickledError("no", object()),
    "group": lambda: ExceptionGroup("two", [ValueError("no"), KeyError("no")]),
    "unsplit group": lambda: UnsplitGroup("two", [ValueError("no"), KeyError("no")]),
    "mixed group": lambda: BaseExceptionGroup("two", [ValueError(), asyncio.CancelledError()]),
    "deep group": lambda: deep(ValueError("no"), 500),
}
"""How to make each."""


def deep(error: Exception, depth: int) -> Exception:
    """The error in groups in groups."""
    for _ in range(depth):
        error = ExceptionGroup("deep", [error])
    return error


def fail(what: str) -> NoReturn:
    """Raise it."""
    raise ERRORS[what]()


async def cancelled_elsewhere() -> None:
    """A cancellation that is no order of the worker."""
    if sniffio.current_async_library() == "asyncio":
        other = asyncio.ensure_future(asyncio.sleep(10))
        await asyncio.sleep(0)
        other.cancel()
        await other
    raise await _stale_cancellation()


async def _stale_cancellation() -> BaseException:
    kept: list[BaseException] = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class() as error:
            kept.append(error)
            raise
    return kept[0]


async def cancels_itself() -> None:
    """By asyncio's own means."""
    _cancel_this_task()
    await anyio.sleep(0)
    raise ValueError("Trio has no such means")


async def cancels_itself_and_raises() -> None:
    """The cancellation comes after the end."""
    _cancel_this_task()
    raise ValueError("no")


def _cancel_this_task() -> None:
    with contextlib.suppress(RuntimeError):  # there is none on Trio
        task = asyncio.current_task()
        assert task is not None
        task.cancel()


async def mixed_with_cancellation() -> None:
    """A group of both."""
    raise BaseExceptionGroup("two", [ValueError("no"), await _stale_cancellation()])


async def failing_children() -> None:
    """One fails, and another one is cancelled for it."""
    async with anyio.create_task_group() as group:
        group.start_soon(_raises)
        group.start_soon(anyio.sleep_forever)


async def _raises() -> None:
    raise ValueError("in a group")


async def child_leaves() -> None:
    """A child ends the process, it thinks."""
    async with anyio.create_task_group() as group:
        group.start_soon(_leaves)
        group.start_soon(anyio.sleep_forever)


async def _leaves() -> None:
    raise SystemExit(3)


async def child_is_interrupted() -> None:
    """The same by the other error that asyncio does not keep."""
    async with anyio.create_task_group() as group:
        group.start_soon(_is_interrupted)


async def _is_interrupted() -> None:
    await anyio.sleep(0)
    raise KeyboardInterrupt


async def leaves_a_callback() -> None:
    """Something that fails when the handler has ended."""
    if sniffio.current_async_library() == "asyncio":
        asyncio.get_running_loop().call_soon(fail, "SystemExit")
    raise ValueError("no")


WAYS: Final = (
    child_leaves,
    child_is_interrupted,
    leaves_a_callback,
    cancelled_elsewhere,
    cancels_itself,
    cancels_itself_and_raises,
    mixed_with_cancellation,
    failing_children,
)
"""Of coroutines."""
