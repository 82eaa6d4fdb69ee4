"""Runs functions in processes: for functions that compute, leak memory, or must be killable.

A process imports the module of the function and finds it by name, so both must exist there.
"""

import os
import pickle
import select
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self

import anyio
import attrs
from anyio.abc import Process, SocketAttribute, UNIXSocketStream

from disque_trio.client.errors import DisqueError
from disque_trio.worker.executors.frames import LENGTH, Order, Raised, Result, name_of, packed
from disque_trio.worker.protocol import Run

PROCESSES: Final = os.cpu_count() or 1
TERM_S: Final = 2.0
"""How long a process may take to end after SIGTERM, before it is killed."""
_BROKEN: Final = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)


class WorkerDiedError(DisqueError):
    """The process of a job has ended before the job; the text is the signal or the exit status."""


@attrs.define(eq=False)
class _Child:
    """A process, and the socket to it."""

    process: Process
    stream: UNIXSocketStream

    async def is_there(self) -> bool:
        """Does an idle process still run? It sends nothing unasked, so readable data mean that the
        socket was closed. The end of the process is checked, too: a process that it started may
        hold the socket open."""
        raw = self.stream.extra(SocketAttribute.raw_socket)
        poll = select.poll()
        poll.register(raw.fileno(), select.POLLIN)
        has_ended = _has_ended(self.process.pid) or bool(poll.poll(0))
        if has_ended:
            await self.end()
        return not has_ended

    async def ask(self, data: bytes) -> Result | Raised | None:
        """Send an order and return its outcome; None if the process has ended before it
        answered."""
        frame = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cut_at_end)
            with suppress(*_BROKEN):
                await self.stream.send(data)
                size = int.from_bytes(await self._exactly(LENGTH), "big")
                frame = await self._exactly(size)
            tasks.cancel_scope.cancel()
        if frame is None:
            return None
        answer: Result | Raised = pickle.loads(frame)
        return answer

    async def _cut_at_end(self) -> None:
        """Shut down the socket when the process has ended: a process that it started may hold the
        other end open. An answer that was sent can still be read."""
        await self.process.wait()
        with suppress(OSError):
            self.stream.extra(SocketAttribute.raw_socket).shutdown(socket.SHUT_RDWR)

    async def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            data += await self.stream.receive(min(size - len(data), 1 << 20))
        return bytes(data)

    async def end(self) -> None:
        """Send SIGTERM, and SIGKILL if the process does not end."""
        with anyio.CancelScope(shield=True):
            await anyio.aclose_forcefully(self.stream)
            if self.process.returncode is None:
                self.process.terminate()
                with anyio.move_on_after(TERM_S):
                    await self.process.wait()
            if self.process.returncode is None:
                self.process.kill()
            await self.process.wait()

    async def death(self) -> WorkerDiedError:
        """Wait for the process, and return an error with its exit status."""
        # Send no signal at first: Popen would take the status from asyncio, which waits for it.
        with anyio.move_on_after(TERM_S, shield=True):
            await self.process.wait()
        await self.end()
        status = self.process.returncode
        assert status is not None
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return WorkerDiedError(how)


def _has_ended(pid: int) -> bool:
    """Has this child ended? Its status remains available to other callers. On macOS always
    False."""
    waitid = getattr(os, "waitid", None)
    if waitid is None:
        return False
    try:
        return waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # its status was already collected
        return True


class ProcessExecutor:
    """Runs functions in up to `processes` processes, which start when they are needed. Use it
    inside `async with`, which ends them."""

    def __init__(self, processes: int = PROCESSES) -> None:
        self._free = anyio.CapacityLimiter(processes)
        self._idle: list[_Child] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        async with anyio.create_task_group() as tasks:
            for child in self._idle:
                tasks.start_soon(child.end)
        self._idle.clear()

    async def run(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], run: Run, /
    ) -> object:
        """Run the function and return its result. Raises its errors; `WorkerDiedError` if its
        process has ended; `NotNamedError` if the process cannot find the function; and errors of
        pickle for arguments. If cancelled, it ends the process."""
        data = packed(Order(*name_of(fn), args, kwargs))
        if not self._idle:
            run.wait()
        async with self._free:
            child = await self._next()
            run.begin()
            try:
                answer = await child.ask(data)
            except BaseException:
                await child.end()
                raise
            if answer is None:
                raise await child.death()
            self._idle.append(child)
        if isinstance(answer, Raised):
            raise answer.error()
        return answer.value

    async def _next(self) -> _Child:
        while self._idle:
            child = self._idle.pop()
            if await child.is_there():
                return child
        return await _begin()


async def _begin() -> _Child:
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-m", "disque_trio.worker.executors.child", str(theirs.fileno())]
        try:
            process = await anyio.open_process(
                command,
                stdin=None,
                stdout=None,
                stderr=None,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                # A SIGTERM to the worker's process group must reach only the worker, not its jobs.
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
    return _Child(process, await UNIXSocketStream.from_socket(ours))
