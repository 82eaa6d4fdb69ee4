"""The comparison: every case in rounds, each contender once a round.

Contenders take turns, so that a slow phase of the machine affects all of them; each round begins
with another one, because the order may matter.
"""

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from benchmarks.case import NOWHERE, Case, Sample
from benchmarks.contenders import OURS, Contender, Subject, running
from benchmarks.programs import Place
from benchmarks.tool import BenchmarkError
from tests.cluster.talk import RefusedError

Rows = dict[str, dict[str, list[Sample]]]
"""Samples by the names of case and contender."""
Tell = Callable[[str], None]
"""Shows what is measured next."""
Start = Callable[[Contender, Place, Path], contextlib.AbstractContextManager[Subject]]
"""A context manager with the running servers."""
_ATTEMPTS: Final = 2
"""redis-benchmark hangs now and then."""
_FAILURES: Final = (BenchmarkError, AssertionError, OSError, RefusedError)


@attrs.frozen
class Plan:
    """What is to be measured. The first contender is ours."""

    cases: Sequence[Case]
    contenders: Sequence[Contender]
    rounds: int
    size: float = 1.0
    start: Start = running

    def steps(self) -> int:
        """How many samples it takes."""
        return sum(len(self.participants(case)) * self.rounds_of(case) for case in self.cases)

    def participants(self, case: Case) -> list[Contender]:
        """The contenders that the case applies to."""
        if case.place is NOWHERE:
            return [each for each in self.contenders if each.name == OURS]
        return [each for each in self.contenders if each.kind in case.kinds]

    def is_whole(self, rows: Rows, name: str) -> bool:
        """Are there as many samples of this case for each participant as planned?"""
        (case,) = [case for case in self.cases if case.name == name]
        found = rows.get(name, {})
        participants = self.participants(case)
        return all(len(found.get(each.name, ())) == self.rounds_of(case) for each in participants)

    def rounds_of(self, case: Case) -> int:
        """How often each is measured."""
        return min(self.rounds, case.rounds)


def run(plan: Plan, tell: Tell, rows: Rows, problems: list[str]) -> None:
    """Take all samples. They are added to `rows` at once, and failures to `problems`."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        for number, (place, cases) in enumerate(
            itertools.groupby(plan.cases, key=lambda case: case.place)
        ):
            with contextlib.closing(
                _Servers(plan.start, place, Path(name) / str(number))
            ) as servers:
                for case in cases:
                    for contender in _turns(plan, case):
                        tell(f"{case.title}: {contender.name}")
                        try:
                            sample = _sample(case, contender, servers, plan.size)
                        except BenchmarkError as error:
                            problems.append(f"{case.name}: {error}")
                        else:
                            of_case = rows.setdefault(case.name, {})
                            of_case.setdefault(contender.name, []).append(sample)


def _turns(plan: Plan, case: Case) -> Iterator[Contender]:
    participants = plan.participants(case)
    for number in range(plan.rounds_of(case)):
        first = number % max(1, len(participants))
        yield from participants[first:] + participants[:first]


def _sample(case: Case, contender: Contender, servers: "_Servers", size: float) -> Sample:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with servers.subject(contender) as subject:
                return case.measure(subject, size)
        except _FAILURES as error:
            servers.forget(contender)
            if attempt == _ATTEMPTS:
                raise BenchmarkError(f"{contender.name}: {error}") from error
    raise AssertionError("the last attempt raises")


class _Servers:
    """The servers of a place: each is started when it is first needed, or for each sample."""

    def __init__(self, start: Start, place: Place, directory: Path) -> None:
        self._begin = start
        self._place = place
        self._directory = directory
        self._started = 0
        self._kept: dict[str, tuple[Subject, contextlib.ExitStack]] = {}

    @contextlib.contextmanager
    def subject(self, contender: Contender) -> Iterator[Subject]:
        """The running servers of a contender."""
        if self._place is NOWHERE:
            yield Subject(contender, (), 0)
        elif self._place.is_fresh:
            with self._new(contender) as subject:
                yield subject
        else:
            if contender.name not in self._kept:
                stack = contextlib.ExitStack()
                self._kept[contender.name] = stack.enter_context(self._new(contender)), stack
            yield self._kept[contender.name][0]

    def _new(self, contender: Contender) -> contextlib.AbstractContextManager[Subject]:
        self._started += 1
        return self._begin(contender, self._place, self._directory / str(self._started))

    def forget(self, contender: Contender) -> None:
        """End a contender's servers after a failure; the next sample starts them anew."""
        if contender.name in self._kept:
            _, stack = self._kept.pop(contender.name)
            with contextlib.suppress(*_FAILURES):
                stack.close()

    def close(self) -> None:
        """End all servers, also if the end of one fails."""
        with contextlib.ExitStack() as stacks:
            for _, stack in self._kept.values():
                stacks.push(stack)
        self._kept.clear()
