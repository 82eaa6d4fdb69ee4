"""Results that nodes keep, for any process that has the app (docs/worker-results.md).

A node has the result of a job if it received the acknowledgement that contained it. So one node is
asked to wait for the end of the job, and then all nodes are asked for the result.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import anyio.to_thread
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.errors import DisqueError
from disque_trio.client.nodes import SILENT_S, NoNodeError
from disque_trio.client.records import JobDetails, JobResult
from disque_trio.client.refusals import UnknownJobError, UnsupportedError
from disque_trio.worker import codec
from disque_trio.worker.checks import seconds_of
from disque_trio.worker.codec import Part
from disque_trio.worker.codecs import Codecs
from disque_trio.worker.describing import type_and_text
from disque_trio.worker.ends import SETTLED_S, Ended
from disque_trio.worker.envelope import BadBodyError, NewerBodyError, as_coded
from disque_trio.worker.exceptions import JobFailedError, NoResultError
from disque_trio.worker.operating.asking import (
    Asking,
    Found,
    InSteps,
    at_each,
    now,
    pause,
    unwrap,
    within,
)

_log: Final = logging.getLogger(__name__)
Value = TypeVar("Value")

SLICE_S: Final = 5.0
"""How long one node is asked to wait: if it does not answer, other nodes are asked after that."""
_SPARE_S: Final = SILENT_S + 0.5
"""How much longer than its timeout a wait may take if a node does not answer."""
_PAUSE_S: Final = 0.2
"""The pause before all nodes are asked again, if answers were missing or inconsistent."""
_OUTAGE_PAUSE_S: Final = 1.0
"""The pause if no node has answered."""
_MOST_STEPS: Final = 1000
"""The maximum number of steps of a chain that is followed."""
_ERROR: Final = ("type", "text", "traceback")
ENDS: Final[dict[Ended | None, str]] = {
    None: "it has not ended",
    "acked": "it was cancelled, or acknowledged without a result",
    "dead": "it is dead",
    "expired": "its ttl has passed",
    "gone": "no node has it any more: it was cancelled, acknowledged without a result, or its "
    "life is over (ttl)",
}
"""Why there is no result, by how the job ended."""
_REMEMBERED: Final[dict[str, tuple[Ended | None, str]]] = {
    "acknowledged": (
        "acked",
        "it was cancelled, or acknowledged without a result, or its result_ttl has passed",
    ),
    "cancelled": ("acked", "it was cancelled"),
    "purged": ("acked", "its queue was purged"),
    "replaced": ("acked", "another job with its key has replaced it"),
    "expired": ("expired", ENDS["expired"]),
    "dropped": ("dead", "it was dead, and no node has it any more"),
    "deleted": (None, "it was deleted"),
    "evicted": (None, "a node has evicted it for lack of memory"),
}
"""The same, by the outcome that nodes remember of a job that they no longer have."""


def value_of(result: codec.Result, read: Callable[[Part], Value]) -> Value:
    """The value of a result. Raises `JobFailedError` if it is an error or cannot be decoded."""
    if result.error is not None:
        raise JobFailedError(*(result.error.get(each, "") for each in _ERROR))
    try:
        return read(result.value)
    except Exception as error:
        text = f"the job is done, but its result has another type: {error}"
        raise JobFailedError(type(error).__qualname__, text) from error


def unreadable(error: Exception) -> JobFailedError:
    """The error for a result that this process cannot decode."""
    return JobFailedError(type(error).__qualname__, f"its result cannot be read: {error}")


async def find(client: Asking, codecs: Codecs, job: str) -> codec.Result | None:
    """The result that nodes keep of this job now; for a chain, that of the last step with a result.
    Raises `DisqueError`, or one of `codec.BAD_INPUT`."""
    for _ in range(_MOST_STEPS):
        best = _best((await _ask_all(client, job)).items)
        if best is None or best.result is None:
            return None
        result = codec.read_result(await _decoded(client, codecs, job, best.result))
        if not result.next:
            return result
        job = result.next
    return None


async def wait(client: Asking, codecs: Codecs, job: str, timeout: float | None) -> codec.Result:
    """The result of this job; for a chain, that of its last step. Raises `JobFailedError` if the
    job is dead or its result cannot be decoded, and `NoResultError` after `timeout` seconds or if
    the job has ended without a result."""
    seconds = seconds_of(timeout)
    limit = None if seconds == math.inf else seconds
    try:
        with within(client, None if limit is None else limit + _SPARE_S):
            return await _waited(client, codecs, job, limit)
    except TimeoutError as error:
        raise NoResultError(job, None, "no node has answered in time") from error


async def _waited(client: Asking, codecs: Codecs, job: str, timeout: float | None) -> codec.Result:
    waiting = _Waiting(client, job, timeout)
    for _ in range(_MOST_STEPS):
        value = await waiting.value()
        try:
            result = codec.read_result(await _decoded(client, codecs, job, value))
        except codec.BAD_INPUT as error:
            raise NoResultError(
                job, "acked", f"what the nodes store is not a result: {error}"
            ) from error
        if not result.next:
            return result
        waiting.step = result.next
    raise NoResultError(job, "acked", "its chain does not end")


async def _decoded(client: Asking, codecs: Codecs, job: str, body: bytes) -> bytes:
    """The decoded result. Raises `JobFailedError` if this process cannot decode it, and
    `NoResultError` if a codec fails otherwise."""
    coded = as_coded(body)
    if coded is None:
        return body
    try:
        codecs.check(coded)
        if isinstance(client, InSteps) or not codecs.waits(coded):
            return codecs.decode(coded)
        return await anyio.to_thread.run_sync(codecs.decode, coded, abandon_on_cancel=True)
    except (BadBodyError, NewerBodyError) as error:
        raise unreadable(error) from error
    except Exception as error:  # for example, a store does not answer
        text = f"its result cannot be read now: {type_and_text(error)}"
        raise NoResultError(job, "acked", text) from error


@attrs.define(eq=False)
class _Waiting:
    """The wait for the result of one job."""

    client: Asking
    job: str
    left: float | None
    """The remaining seconds; None is no limit."""
    step: str = attrs.field(init=False, default=attrs.Factory(lambda self: self.job, True))
    """The id of the step that is awaited."""

    async def value(self) -> bytes:
        """The encoded result of the step."""
        missing_since: float | None = None
        while True:
            answer = await self._unless_none_answers(self._wait)
            if answer is not None and answer.result is not None:
                return answer.result
            if answer is None and self.left == 0:
                raise await self._none(None)
            if answer is None:
                continue
            found = await self._unless_none_answers(partial(_ask_all, self.client, self.step))
            if found is None:
                continue
            best = _best(found.items)
            if best is not None and best.result is not None:
                return best.result
            end = _end(found.items)
            if end == "dead":
                raise await self._dead()
            if end is not None and not found.unreached:
                raise await self._none(end)
            # A node that does not answer may have the result.
            missing_since = now(self.client) if missing_since is None else missing_since
            if self.left == 0 or now(self.client) - missing_since > SETTLED_S:
                raise await self._none(end, found.unreached)
            await self._pause()

    async def _wait(self) -> JobResult | None:
        """The answer of one node after the job has ended; None if it has not ended within this
        slice."""
        slice_s = SLICE_S if self.left is None else min(self.left, SLICE_S)
        began = now(self.client)
        answer: JobResult | None
        try:
            command = commands.waitresult(self.step, timeout=slice_s)
            answer = await self.client.run(attrs.evolve(command, patience_s=SILENT_S))
        except UnknownJobError:
            answer = JobResult("acked", None)
        # A node has waited for the whole slice, even if the clock of a test stood still.
        self._passed(max(now(self.client) - began, slice_s if answer is None else 0.0))
        return answer

    async def _unless_none_answers(self, ask: Callable[[], Awaitable[Value]]) -> Value | None:
        """The answers of nodes. If no node answers, all of them may be starting: pause, and return
        None. Raises `NoNodeError` at the end of the wait."""
        began = now(self.client)
        try:
            return await ask()
        except NoNodeError as error:
            self._passed(now(self.client) - began)
            if self.left == 0:
                raise
            _log.warning("the result of %s cannot be read now: %s", self.job, error)
            await self._pause(_OUTAGE_PAUSE_S)
            return None

    async def _pause(self, seconds: float = _PAUSE_S) -> None:
        await pause(self.client, seconds)
        self._passed(seconds)

    def _passed(self, seconds: float) -> None:
        if self.left is not None:
            self.left = max(self.left - seconds, 0.0)

    async def _none(self, end: Ended | None, unreached: Iterable[str] = ()) -> NoResultError:
        end, text = await why(self.client, self.step, end)
        if unreached:
            text = f"{', '.join(unreached)} did not answer; of the others: {text}"
        if self.step != self.job:
            text = f"its step {self.step}: {text}"
        return NoResultError(self.job, None if end == "gone" else end, text)

    async def _dead(self) -> JobFailedError:
        """The error for a dead step, with the error or reason that nodes keep."""

        async def ask(node: Address) -> list[JobDetails]:
            found = unwrap(*await self.client.ask(node, [commands.show(self.step)]))
            return [found] if found is not None and found.state == "dead" else []

        copies = (await at_each(self.client, ask)).items
        errors = [each.error for each in copies if each.error is not None]
        if errors:
            latest = max(errors, key=lambda error: error.at)
            return JobFailedError(latest.kind, latest.message, latest.traceback)
        reasons = (each.more.get("reason") for each in copies)
        reason = next((each for each in reasons if isinstance(each, bytes)), b"")
        return JobFailedError("Dead", reason.decode(errors="backslashreplace"))


async def why(client: Asking, job: str, end: Ended | None) -> tuple[Ended | None, str]:
    """How a job has ended, and why it has no result. For a job that no node has any more, ask nodes
    for the outcome that they remember."""
    if end != "gone":
        return end, ENDS[end]

    async def ask(node: Address) -> list[str]:
        [reply] = await client.ask(node, [commands.show(job, is_ended=True)])
        found = unwrap(reply)
        return [] if found is None or found.ending is None else [found.ending.outcome]

    try:
        outcomes = (await at_each(client, ask)).items
    except DisqueError:
        outcomes = []
    known = (_REMEMBERED.get(each) for each in outcomes)
    return next((each for each in known if each is not None), (end, ENDS[end]))


_Answer = JobResult | None
"""The answer of a node: how the job has ended, possibly with its result; None if it has not
ended."""


async def _ask_all(client: Asking, job: str) -> Found[_Answer]:
    async def ask(node: Address) -> list[_Answer]:
        [reply] = await client.ask(node, [commands.waitresult(job, timeout=0)])
        if isinstance(reply, UnknownJobError | UnsupportedError):
            return []
        return [unwrap(reply)]

    return await at_each(client, ask)


def _best(answers: Sequence[_Answer]) -> JobResult | None:
    """The first answer with a result, if any."""
    return next((each for each in answers if each is not None and each.result is not None), None)


def _end(answers: Sequence[_Answer]) -> Ended | None:
    """How the job has ended, by the answers of all nodes that have it; None if it has not."""
    ends: list[Any] = [None if each is None else each.end for each in answers]
    for end in ("acked", "expired"):  # these are final, whatever other nodes report
        if end in ends:
            return end
    if not ends:
        return "gone"
    return None if None in ends else "dead"


async def safely(client: Asking, codecs: Codecs, job: str) -> codec.Result | None:
    """As `find`; None if no node answers, or if nodes keep something that is not a result."""
    try:
        return await find(client, codecs, job)
    except (JobFailedError, NoResultError):  # codecs cannot decode it
        raise
    except (DisqueError, *codec.BAD_INPUT):
        return None
