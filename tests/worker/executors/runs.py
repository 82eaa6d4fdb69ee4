"""Runs without a worker."""

from collections.abc import Awaitable, Callable

import anyio

from disque_trio.worker.engine.records import Start
from disque_trio.worker.protocol import Run


class NoDriver:
    """Knows of no job."""

    is_stopping = False
    slots = 1

    def lease_end(self, id: bytes) -> float:  # noqa: ARG002
        """Never."""
        return float("inf")

    def node_of(self, id: bytes) -> str:  # noqa: ARG002
        """Nowhere."""
        return ""

    def has(self, feature: bytes) -> bool:  # noqa: ARG002
        """It has none."""
        return False

    def has_slot_for(self, queue: bytes) -> bool:  # noqa: ARG002
        """As many as there are jobs."""
        return True

    def limit(self, id: bytes, seconds: float) -> float:  # noqa: ARG002
        """When it would be."""
        return anyio.current_time() + seconds


def a_run() -> Run:
    """A run of nothing."""
    return Run(Start(b"D-1", b"q", b"", 0, 0), NoDriver())


def told(kind: str, story: Callable[[], Awaitable[None]]) -> None:
    """Tell it in an event loop of this kind."""

    async def timed() -> None:
        with anyio.fail_after(120):
            await story()

    anyio.run(timed, backend=kind)
