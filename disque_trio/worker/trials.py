"""Trials: runs of a job alone, because its workers may have died of it (docs/worker.md, "When a
worker dies").

Nodes count a delivery each time they queue a job again, also if nobody has had it: a node that
stood still may have kept it queued. So a worker notes each trial before it begins, with what the
node has counted. If the job comes again with more deliveries and no other answer, that trial
brought none (decision 165).
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
"""How long the end of a note may take when its job has ended."""
WAIT_S: Final = 5.0
"""Before a job whose trials no node can tell, or note, is looked at again."""


@attrs.frozen
class Trial:
    """What is noted of the last one. Counts are those of the node when it began."""

    crashes: int
    """How many earlier ones brought no answer."""
    deliveries: int
    """Deliveries without an answer."""
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
    """That of a delivery, after the one that was noted, if it was."""
    with suppress(*codec.BAD_INPUT):  # a note of something else
        if note is not None:
            return _read(note).next(start)
    return Trial(0, start.additional_deliveries, _answers(start))


@attrs.define(eq=False)
class _Trials:
    """Those of one job, as its worker sees them."""

    enqueuer: Enqueuer
    _note: str = ""

    async def begin(self, job: Job[Any]) -> int:
        """Note that the job begins alone; how many of its trials brought no answer. Raises `Snooze`
        if no node can be asked."""
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
        """The job has ended: nobody will ask any more."""
        if self._note:
            with anyio.move_on_after(PATIENCE_S, shield=True), suppress(DisqueError):
                await self.enqueuer.client.run(commands.ackjob(self._note))


async def on_trial(
    enqueuer: Enqueuer,
    handle: Callable[[Run, Callable[[Job[Any]], Awaitable[int]]], Awaitable[Outcome]],
    run: Run,
) -> Outcome:
    """Run a job that begins alone by `handle`, which says when it begins."""
    trials = _Trials(enqueuer)
    outcome = await handle(run, trials.begin)
    if isinstance(outcome, Done | Dead):
        await trials.end()
    return outcome
