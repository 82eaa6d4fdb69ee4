"""Compares rules with trials. If they disagree, one of them has a bug."""

from collections.abc import Iterable, Iterator
from typing import Final

from disque_trio.explain.job_request import JobRequest
from disque_trio.explain.rules import NO, YES, Answer
from disque_trio.explain.trials import Trial, scaled
from disque_trio.statemachine.base import Millis
from disque_trio.terminal.counting import counted

_BACKLOG: Final[Millis] = 2_000
"""How long the jobs of a trial wait for each other, because its workers start together."""


def disagreements(answer: Answer, request: JobRequest, trials: Iterable[Trial]) -> Iterator[str]:
    """Return each contradiction between the answer for a family and its trials, as a sentence."""
    for trial in trials:
        for found in _against(answer, request, trial):
            yield f"{answer.family}, seed {trial.seed}: {found}"


def _against(answer: Answer, request: JobRequest, trial: Trial) -> Iterator[str]:
    yield from trial.violations
    if answer.loss.lost == NO and trial.gone:
        yield f"{trial.gone} of {counted(trial.added, 'job')} were lost, and none may be"
    if answer.loss.lost == YES and trial.waiting_gone < trial.waiting:
        came = trial.waiting - trial.waiting_gone
        jobs = counted(trial.waiting, "job")
        yield f"{came} of {jobs} that waited were delivered, but all must be lost"
    if extra := [cause for cause in trial.causes if cause not in answer.twice]:
        yield f"jobs were delivered twice by {', '.join(extra)}, which the rules do not allow"
    if answer.late is not None:
        late = answer.late // scaled(request)[1] + _BACKLOG
        if trial.longest_ms > late:
            yield f"a job was delivered after {trial.longest_ms} ms, but {late} ms is the latest"
