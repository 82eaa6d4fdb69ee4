"""Stacks of the tasks and threads of this process: for SIGUSR2, and for handlers that do not
end."""

import linecache
import sys
import threading
import traceback
from collections.abc import Iterator
from types import AsyncGeneratorType, CoroutineType, FrameType
from typing import Any

import anyio


def stacks() -> str:
    """The stacks of all tasks of this event loop, and of all other threads."""
    tasks = [f"task {task.name}\n{of_coroutine(task.coro)}" for task in anyio.get_running_tasks()]
    here = threading.get_ident()
    threads = [
        f"thread {each.name}\n{of_thread(each.ident)}"
        for each in threading.enumerate()
        if each.ident is not None and each.ident != here
    ]
    return "\n".join([*tasks, *threads])


def of_coroutine(coroutine: Any) -> str:
    """The stack of a coroutine, the innermost call last."""
    return "".join(map(_line, frames_of(coroutine)))


def of_thread(ident: int) -> str:
    """The stack of a thread, the innermost call last; empty if it has ended."""
    frame = sys._current_frames().get(ident)
    return "" if frame is None else "".join(traceback.format_stack(frame))


def frames_of(awaited: Any) -> Iterator[FrameType]:
    """The frames of a coroutine, the innermost last."""
    while awaited is not None:
        if isinstance(awaited, CoroutineType):
            frame, awaited = awaited.cr_frame, awaited.cr_await
        elif isinstance(awaited, AsyncGeneratorType):
            frame, awaited = awaited.ag_frame, awaited.ag_await
        else:
            frame = getattr(awaited, "gi_frame", None)
            awaited = getattr(awaited, "gi_yieldfrom", None)
        if frame is not None:
            yield frame


def _line(frame: FrameType) -> str:
    code, number = frame.f_code, frame.f_lineno
    text = linecache.getline(code.co_filename, number).strip()
    return f'  File "{code.co_filename}", line {number}, in {code.co_name}\n    {text}\n'
