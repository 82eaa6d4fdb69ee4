"""Runs of jobs without a driver: what a handler is given, and what it says."""

import json
from collections.abc import Sequence
from typing import Any

import anyio
import attrs

from disque_trio.worker.app import App
from disque_trio.worker.engine.records import Outcome, Reason, Start
from disque_trio.worker.handler import JobHandler
from disque_trio.worker.protocol import Run

ID = b"D-cccccccc-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"


@attrs.define(eq=False)
class Driver:
    """What a driver tells a run."""

    is_stopping: bool = False
    slots: int = 1
    end: float = 1e9
    features: frozenset[bytes] = frozenset()
    limits: list[float] = attrs.Factory(list)

    def lease_end(self, id: bytes) -> float:
        assert id == ID
        return self.end

    def node_of(self, id: bytes) -> str:
        assert id == ID
        return "n1:7711"

    def has(self, feature: bytes) -> bool:
        return feature in self.features

    def has_slot_for(self, queue: bytes) -> bool:
        return bool(queue)

    def limit(self, id: bytes, seconds: float) -> float:
        assert id == ID
        self.limits.append(seconds)
        return anyio.current_time() + seconds


def body(task: str, *args: Any, **more: Any) -> bytes:
    """A body as any producer may write it."""
    return json.dumps({"task": task, "args": args, **more}).encode()


def run_of(
    what: bytes,
    *,
    queue: bytes = b"default",
    nacks: int = 0,
    crashes: int = 0,
    why: Reason | None = None,
    driver: Driver | None = None,
    id: bytes = ID,
    **told: int,
) -> Run:
    """A run of a job with this body."""
    return Run(Start(id, queue, what, nacks, crashes, **told), driver or Driver(), why)


def outcome(app: App[Any], what: bytes, backend: str = "trio", **run: Any) -> Outcome:
    """What becomes of a job with this body."""
    return outcomes(app, [run_of(what, **run)], backend)[0]


def outcomes(app: App[Any], runs: Sequence[Run], backend: str = "trio") -> list[Outcome]:
    """What becomes of each, one after the other."""

    async def held() -> list[Outcome]:
        with anyio.fail_after(60):
            async with handler_of(app) as handler:
                return [await handler(run) for run in runs]

    return anyio.run(held, backend=backend)


def handler_of(app: App[Any], **options: Any) -> JobHandler:
    """Its handler, which draws no random numbers."""
    return app.handler(**{"draw": lambda: 1.0, **options})
