"""The handle of a flow that was added, for any process that has the app."""

import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, Literal

import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.client.nodes import NoNodeError
from disque_trio.worker.checks import seconds_of
from disque_trio.worker.handles import Clients
from disque_trio.worker.options import Place

_log: Final = logging.getLogger(__name__)
CANCELLED: Final = "cancelled"
FAILED: Final = "failed"
"""The keys of marks in the queue of a flow's tokens: the flow is cancelled, or it is over and not
all members are done."""
UNDONE: Final[tuple[Literal["cancelled", "expired"], ...]] = ("cancelled", "expired")
"""The unsuccessful ends that nodes cannot distinguish from a success, because the job was
acknowledged."""
_PAUSES_S: Final = (0.1, 2.0)
_LOOKS: Final = 5
"""One of this many looks of `wait` asks for all members."""

FlowState = Literal["running", "failed", "done", "cancelled", "unknown"]
MemberState = Literal[
    "pending",
    "waiting",
    "leased",
    "backing-off",
    "dead",
    "done",
    "cancelled",
    "expired",
    "skipped",
]  # fmt: skip


@attrs.frozen
class Planned:
    """A member as its producer defined it."""

    task: str
    after: tuple[int, ...]
    places: tuple[Place, ...]
    """The queue and key of its job, and of the later steps of its chain."""


def key_of(end: str, place: int) -> str:
    """The key of the mark that states this end of a member."""
    return f"{end}-{place}"


@attrs.frozen(kw_only=True)
class FlowMemberStatus:
    """The state of one member of a flow."""

    place: int
    """Its position in the flow, from 0."""
    task: str
    state: MemberState
    """`pending`: its predecessors are not done. `waiting`, `leased`, `backing-off`, `dead`: as in
    `JobStatus`. `done`: its job (for a chain, the last one) was acknowledged or has expired.
    `cancelled`, `expired`: the flow is over, and the member has ended this way. `skipped`: the flow
    is over, and the member was not added."""
    id: str = ""
    """The id of its job; empty before it is added."""


@attrs.frozen(kw_only=True)
class FlowStatus:
    """The state of a flow. `attrs.asdict` converts it to a dictionary for a JSON response."""

    id: str
    state: FlowState
    """`running`: a member runs or can still run. `failed`: no member can run because others are
    dead (`EnqueuedFlow.retry`), or the flow is over and not all members are done. `done`: all
    members are done. `cancelled`: the flow was cancelled. `unknown`: no node has the flow, or has
    it any more."""
    members: Sequence[FlowMemberStatus] = ()

    @property
    def counts(self) -> dict[str, int]:
        """The number of members by state."""
        return dict(Counter(each.state for each in self.members))

    @property
    def dead(self) -> Sequence[FlowMemberStatus]:
        """The members that are dead."""
        return [each for each in self.members if each.state == "dead"]


class FlowFailedError(DisqueError):
    """The flow is not done, because members are dead, skipped, cancelled or expired. `status` is a
    `FlowStatus`."""

    def __init__(self, status: FlowStatus) -> None:
        counts = ", ".join(f"{count} {state}" for state, count in status.counts.items())
        super().__init__(f"flow {status.id} is {status.state}: {counts or 'no members known'}")
        self.status = status


@attrs.frozen
class EnqueuedFlow:
    """A flow that was added. All methods raise errors of the client, such as `NoNodeError`."""

    id: str
    """The id of the flow, for `App.find_flow`: that of the job that adds the members."""
    members: Sequence[Planned] = attrs.field(eq=False, repr=False)
    place: Place = attrs.field(eq=False, repr=False)
    """The queue and key of that job."""
    tokens: str = attrs.field(eq=False, repr=False)
    """The queue of the flow's tokens."""
    _enqueuer: Clients = attrs.field(eq=False, repr=False)

    async def status(self) -> FlowStatus:
        """The state of the flow and of each member, as far as nodes still have it."""
        found: FlowStatus = await _asking().status(self, self._enqueuer.client)
        return found

    async def cancel(self) -> bool:
        """Cancel the flow: no further member is added, and those that wait or run are cancelled
        within 15 s, if a worker serves the flow's queue. Returns False if the flow is over."""
        return bool(await _asking().cancel(self, self._enqueuer.client))

    async def retry(self) -> int:
        """Redrive the dead members, and return their number. Their successors are added when they
        are done."""
        return int(await _asking().retry(self, self._enqueuer.client))

    async def wait(self, timeout: float | None = None) -> FlowStatus:
        """Wait until all members are done, for at most `timeout` seconds; None is no limit. The
        wait continues while no node answers. Raises `FlowFailedError` if the flow cannot succeed
        without `retry`, and `TimeoutError` after the timeout."""
        anyio: Any = import_module("anyio")
        with anyio.move_on_after(seconds_of(timeout)):
            for pause, is_full in _looks():
                with _through_outage(self.id):
                    found: FlowStatus | None = await _asking().look(
                        self, self._enqueuer.client, is_full=is_full
                    )
                    if found is not None:
                        return found
                await anyio.sleep(pause)
        raise _late(self.id, timeout)

    @property
    def blocking(self) -> "BlockingEnqueuedFlow":
        """The same flow for threads and code without an event loop."""
        return BlockingEnqueuedFlow(self)


@attrs.frozen
class BlockingEnqueuedFlow:
    """A flow that was added, for threads and code without an event loop."""

    _flow: EnqueuedFlow

    @property
    def id(self) -> str:
        """The id of the flow."""
        return self._flow.id

    def status(self) -> FlowStatus:
        """The state of the flow (`EnqueuedFlow.status`)."""
        found: FlowStatus = self._finished(_asking().status)
        return found

    def cancel(self) -> bool:
        """Cancel the flow (`EnqueuedFlow.cancel`)."""
        return bool(self._finished(_asking().cancel))

    def retry(self) -> int:
        """Redrive the dead members (`EnqueuedFlow.retry`)."""
        return int(self._finished(_asking().retry))

    def wait(self, timeout: float | None = None) -> FlowStatus:
        """Wait until all members are done (`EnqueuedFlow.wait`)."""
        ends = time.monotonic() + seconds_of(timeout)
        with self._flow._enqueuer.blocking_client.within(timeout):
            for pause, is_full in _looks():
                with _through_outage(self.id):
                    found: FlowStatus | None = self._finished(_asking().look, is_full=is_full)
                    if found is not None:
                        return found
                if time.monotonic() + pause > ends:
                    break
                time.sleep(pause)
        raise _late(self.id, timeout)

    def _finished(self, ask: Any, **more: Any) -> Any:
        asking: Any = import_module("disque_trio.worker.operating.asking")
        client = asking.InSteps(self._flow._enqueuer.blocking_client)
        return asking.finished(ask(self._flow, client, **more))


def _late(id: str, timeout: float | None) -> TimeoutError:
    return TimeoutError(f"flow {id} was not done within {timeout} s")


def _asking() -> Any:
    """A module that needs an event loop, which adding flows does not."""
    return import_module("disque_trio.worker.flows.asking")


@contextmanager
def _through_outage(id: str) -> Iterator[None]:
    """Log that no node answers: all of them may be starting."""
    try:
        yield
    except NoNodeError as error:
        _log.warning("cannot read flow %s now: %s", id, error)


def _looks() -> Iterator[tuple[float, bool]]:
    """The pauses between looks of `wait`, and which looks ask for all members."""
    pause, longest = _PAUSES_S
    number = 0
    while True:
        number += 1
        yield pause, number % _LOOKS == 0
        pause = min(1.5 * pause, longest)
