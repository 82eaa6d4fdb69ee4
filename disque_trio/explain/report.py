"""A report: the answers for one job in one cluster, with the trials of each."""

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from disque_trio.explain.agreement import disagreements
from disque_trio.explain.facts import Facts
from disque_trio.explain.holders import Holder
from disque_trio.explain.job_request import JobRequest
from disque_trio.explain.rules import Answer, answers, hints, refusal, remarks
from disque_trio.explain.trials import Trial
from disque_trio.statemachine.joboptions import CARRIED


@attrs.frozen
class Tried:
    """The totals over the trials of one family."""

    runs: int
    jobs: int
    """The number of ADDJOBs that returned an id."""
    lost: int
    twice: int
    """The number of jobs that were delivered more than once."""
    causes: tuple[str, ...]
    refused: int
    """The number of ADDJOBs that returned no id."""
    dead: int
    longest_ms: int
    """The longest wait of a due job after workers had started."""


def tried(trials: Sequence[Trial]) -> Tried:
    """Return the totals."""
    causes = dict.fromkeys(cause for trial in trials for cause in trial.causes)
    return Tried(
        runs=len(trials),
        jobs=sum(trial.added for trial in trials),
        lost=sum(trial.gone for trial in trials),
        twice=sum(trial.twice for trial in trials),
        causes=tuple(sorted(causes)),
        refused=sum(trial.refused for trial in trials),
        dead=sum(trial.dead for trial in trials),
        longest_ms=max((trial.longest_ms for trial in trials), default=0),
    )


@attrs.frozen
class Line:
    """One family."""

    answer: Answer
    tried: Tried | None
    """None without trials."""


@attrs.frozen(kw_only=True)
class Report:
    """All answers for a job."""

    request: JobRequest
    facts: Facts
    refusal: str
    """Why ADDJOB is refused; empty if it is not."""
    remarks: tuple[str, ...]
    lines: tuple[Line, ...]
    hints: tuple[str, ...]
    disagreements: tuple[str, ...]
    holders: tuple[Holder, ...] = ()
    """For a job of a cluster, in the order in which they were selected."""

    def _job(self) -> dict[str, Any]:
        """The options; those of its extensions beside the others."""
        job = attrs.asdict(self.request, recurse=False)
        extensions = job.pop("extensions")
        job |= {each.name: getattr(extensions, each.extension) or None for each in CARRIED}
        return {**job, "unique": extensions.key is not None}

    def as_plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "job": self._job(),
            "cluster": attrs.asdict(self.facts),
            "refusal": self.refusal,
            "remarks": self.remarks,
            "faults": [
                {
                    "name": line.answer.family,
                    "title": line.answer.title,
                    **attrs.asdict(line.answer.loss),
                    "twice": line.answer.twice,
                    "late_ms": line.answer.late,
                    "trials": None if line.tried is None else attrs.asdict(line.tried),
                }
                for line in self.lines
            ],
            "holders": [attrs.asdict(each) for each in self.holders],
            "hints": self.hints,
            "disagreements": self.disagreements,
        }


def report(
    request: JobRequest, facts: Facts, trials: Iterable[Trial] = (), holders: Sequence[Holder] = ()
) -> Report:
    """The report on a job, with the trials that were made of it."""
    by_family: dict[str, list[Trial]] = {}
    for trial in trials:
        by_family.setdefault(trial.family, []).append(trial)
    found = answers(request, facts)
    refused = refusal(request, facts)
    return Report(
        request=request,
        facts=facts,
        refusal=refused,
        remarks=() if refused else tuple(remarks(request, facts)),
        lines=tuple(
            Line(each, tried(by_family[each.family]) if each.family in by_family else None)
            for each in found
        ),
        hints=() if refused else tuple(hints(request, facts)),
        disagreements=tuple(
            text
            for each in found
            for text in disagreements(each, request, by_family.get(each.family, ()))
        ),
        holders=tuple(holders),
    )
