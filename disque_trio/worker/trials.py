"""Trials: runs of a job alone, because it may have killed its workers (docs/worker.md, "When a
worker dies").

Nodes count a delivery each time they enqueue a job again, even if no worker has received it: a
suspended node may have kept it enqueued. So a worker records each trial before it starts, with the
counts of the node. If the job is redelivered with more deliveries and without an outcome, that
trial ended without one (decision 165).
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, Self

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.errors import DisqueError
from disque_trio.worker import codec, notes
from disque_trio.worker.context import Job
from disque_trio.worker.engine import words
from disque_trio.worker.engine.records import Dead, Done, Outcome, Start
from disque_trio.worker.engine.suspects import proven
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.exceptions import Snooze
from disque_trio.worker.protocol import Run

PATIENCE_S: Final = 5.0
"""How long deleting a note may take after its job has ended."""
WAIT_S: Final = 5.0
"""The pause before a job is looked at again, if nodes cannot return or record its trials."""


@attrs.frozen
class Trial:
    """The record of the last trial. Counts are those of the node when it started."""

    crashes: int
    """The number of earlier trials that ended without an outcome."""
    deliveries: int
    """Deliveries without an outcome."""
    answers: int
    """Failures and snoozes."""

    def next(self, start: Start) -> Self:
        """The trial of this delivery."""
        most, answers = start.additional_deliveries, _answers(start)
        had_none = most > self.deliveries and answers == self.answers
        return type(self)(self.crashes + had_none, most, answers)


_read: Final = codec.body_reader(Trial)


def _answers(start: Start) -> int:
    return start.nacks + start.snoozes


def trial_of(note: bytes | None, start: Start) -> Trial:
    """The trial of a delivery, after the recorded one, if any."""
    with suppress(*codec.BAD_INPUT):  # another kind of note
        if note is not None:
            return _read(note).next(start)
    return Trial(0, start.additional_deliveries, _answers(start))


@attrs.define(eq=False)
class _Trials:
    """The trials of one job in its worker."""

    enqueuer: Enqueuer
    _note: str = ""

    async def begin(self, job: Job[Any]) -> int:
        """Record that the job starts alone. Returns how many of its trials ended without an
        outcome. Raises `Snooze` if no node answers."""
        start = job.run.start
        if not job.run.has(words.UNIQUE):
            return proven(start.additional_deliveries)
        key = f"{job.id}/trials"
        try:
            trial = trial_of(await notes.find(self.enqueuer, key), start)
            self._note = await notes.keep(
                self.enqueuer,
                key,
                codec.write(trial, "json"),
                seconds=notes.life_of(job.run),
                replicate=job.copies.replicate,
                sync=1,
            )
        except DisqueError as error:
            raise Snooze(WAIT_S, reason=f"its trials cannot be noted: {error}") from error
        return trial.crashes

    async def end(self) -> None:
        """The job has ended: delete its note."""
        if self._note:
            with anyio.move_on_after(PATIENCE_S, shield=True), suppress(DisqueError):
                await self.enqueuer.client.run(commands.ackjob(self._note))


async def on_trial(
    enqueuer: Enqueuer,
    handle: Callable[[Run, Callable[[Job[Any]], Awaitable[int]]], Awaitable[Outcome]],
    run: Run,
) -> Outcome:
    """Run a job alone by `handle`, which calls `_Trials.begin` before the job starts."""
    trials = _Trials(enqueuer)
    outcome = await handle(run, trials.begin)
    if isinstance(outcome, Done | Dead):
        await trials.end()
    return outcome
