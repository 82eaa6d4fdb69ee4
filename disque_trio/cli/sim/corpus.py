"""The directory of a guided sweep: the plans that it keeps, and what it goes on with."""

import json
import os
from pathlib import Path
from typing import Any, Final

import attrs

from disque_trio.cli.frame import cannot_write
from disque_trio.sim.guided.search import Candidate, Kept, Search
from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.scenarios.plan_file import PlanError
from disque_trio.terminal.options import UsageError

FILE: Final = "corpus.json"
PLANS: Final = "plans"
FAILURES: Final = "failures"
_VERSION: Final = 1


@attrs.define
class Corpus:
    """One directory. Whatever is in `corpus.json` has its files, so it may be left at any time."""

    directory: Path
    identity: dict[str, Any]
    """What must not change from one sweep to the next: scenarios, seed and engine."""
    code: str
    """Other code gives other signatures, so its plans are run again first."""
    next: int = 0
    """The number of the next candidate."""
    _round: int = 0
    """How often the code has changed."""
    _first: list[str] = attrs.Factory(list)
    """The files of plans that other code has kept."""

    def load(self, search: Search) -> None:
        """Read what earlier sweeps have kept, if any have. Raises `UsageError`."""
        try:
            (self.directory / PLANS).mkdir(parents=True, exist_ok=True)
            (self.directory / FAILURES).mkdir(exist_ok=True)
            path = self.directory / FILE
            if path.exists():
                self._read(json.loads(path.read_text("utf-8")), search)
            elif any((self.directory / PLANS).iterdir()):
                raise UsageError(f"{self.directory} has plans, but no {FILE}: it is not a corpus")
        except (OSError, PlanError) as error:
            raise UsageError(f"cannot use the corpus {self.directory}: {error}") from None
        except (ValueError, KeyError, TypeError, IndexError):
            raise UsageError(
                f"{self.directory / FILE} is damaged, so the directory is not a corpus"
            ) from None

    def _read(self, facts: dict[str, Any], search: Search) -> None:
        if facts["corpus"] != _VERSION:
            raise UsageError(
                f"{self.directory} is a corpus of another format version than {_VERSION}"
            )
        for name, value in self.identity.items():
            if facts[name] != value:
                raise UsageError(
                    f"{self.directory} is a corpus for other {name}: use another directory, or "
                    f"the same {name}"
                )
        self._round, self._first = facts["round"], facts["first"]
        if facts["code"] != self.code:
            files = [each["file"] for each in facts["kept"]]
            self._first = [*files, *(name for name in self._first if name not in files)]
            self._round += 1
            search.first = [self._scenario_and_plan(name) for name in self._first]
            return
        self.next = facts["next"]
        search.first = [self._scenario_and_plan(name) for name in self._first]
        elements: list[str] = facts["elements"]
        for each in facts["kept"]:
            signature = tuple(elements[number] for number in each["signature"])
            scenario, plan = self._scenario_and_plan(each["file"])
            search.keep(Kept(each["number"], scenario, plan, signature, each["steps"]))
        search.rates = {way: (rate[0], rate[1]) for way, rate in facts["rates"].items()}

    def _scenario_and_plan(self, name: str) -> tuple[str, Plan]:
        plan = plan_file.load(self.directory / PLANS / name)
        return plan.scenario, plan

    def file_of(self, number: int) -> str:
        """The name of the file of this candidate."""
        return f"{self._round}-{number:06}.json"

    def add(self, candidate: Candidate, new: int) -> None:
        """Write a plan that is kept."""
        note = f"{candidate.how}; {new} new"
        self._write(Path(PLANS, self.file_of(candidate.number)), candidate.plan, note)

    def add_failure(self, candidate: Candidate, note: str) -> str:
        """Write a plan that violates a property; its path."""
        return self._write(
            Path(FAILURES, f"{candidate.scenario}-{self.file_of(candidate.number)}"),
            candidate.plan,
            note,
        )

    def _write(self, name: Path, plan: Plan, note: str) -> str:
        path = self.directory / name
        try:
            path.write_text(plan_file.dump(plan, note), "utf-8")
        except OSError as error:
            raise cannot_write(str(path), error) from None
        return str(path)

    def save(self, search: Search) -> None:
        """Write how far the search has come, and remove the plans that are not kept any more."""
        numbers = {element: number for number, element in enumerate(search.counts)}
        kept = [
            {
                "number": each.number,
                "file": self.file_of(each.number),
                "steps": each.steps,
                "signature": [numbers[element] for element in each.signature],
            }
            for each in search.kept
        ]
        facts = {
            "corpus": _VERSION,
            **self.identity,
            "code": self.code,
            "round": self._round,
            "next": self.next,
            "rates": search.rates,
            "first": self._first,
            "kept": kept,
            "elements": list(search.counts),
        }
        path = self.directory / FILE
        half = path.with_suffix(".new")
        try:
            half.write_text(json.dumps(facts), "utf-8")
            os.replace(half, path)
            wanted = {str(each["file"]) for each in kept} | set(self._first)
            for file in (self.directory / PLANS).iterdir():
                if file.name not in wanted:
                    file.unlink()
        except OSError as error:
            raise cannot_write(str(path), error) from None
