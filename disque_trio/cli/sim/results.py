"""The results of a sweep as a file of JSON lines, from which a later sweep continues."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from disque_trio.cli.sim import report
from disque_trio.cli.sim.execution import Result
from disque_trio.cli.sim.pool import Done
from disque_trio.cli.sim.sources import plan_from
from disque_trio.sim.scenarios import plan_file
from disque_trio.terminal.options import UsageError

FILE = "results.jsonl"
FAILURES = "failures"

Key = tuple[str, int]
"""Path of the scenario, and seed."""
Kept = tuple[str, Result]
"""The path of the scenario, and the result of one seed."""


class ResultStore(Protocol):
    """Stores what a sweep finds, and has what earlier sweeps have found."""

    def kept(self) -> Iterator[Kept]:
        """Earlier results of the same code and the same scenarios."""

    def costs(self, engine: str) -> dict[Key, float]:
        """The seconds of a processor that seeds have taken before, with whatever code."""

    def add(self, path: str, done: Done) -> None:
        """Keep it."""

    def close(self) -> None:
        """Finish; everything that was added is stored. May be called twice."""


class DirectoryStore:
    """Results in a directory."""

    def __init__(self, directory: str, versions: dict[str, str]) -> None:
        """`versions` has the version of code and scenario, by path; other results do not count."""
        self._versions = versions
        self._directory = directory
        self._failures = Path(directory, FAILURES)
        self._path = Path(directory, FILE)
        try:
            self._failures.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a+", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write to {directory}: {error.strerror or error}") from None

    def kept(self) -> Iterator[Kept]:
        """The complete lines of the same versions."""
        line = "\n"
        with self._path.open(encoding="utf-8") as file:
            for line in file:
                facts = _facts(line)
                if facts is not None and self._versions.get(facts["path"]) == facts["version"]:
                    yield facts["path"], report.from_plain(facts)
        if not line.endswith("\n"):
            self._file.write("\n")

    def costs(self, engine: str) -> dict[Key, float]:
        """The costs in all lines; the latest counts."""
        with self._path.open(encoding="utf-8") as file:
            found = [facts for line in file if (facts := _facts(line)) is not None]
        return {
            (facts["path"], facts["seed"]): facts["seconds"]
            for facts in found
            if facts.get("engine") == engine and "seconds" in facts
        }

    def add(self, path: str, done: Done) -> None:
        """Store it; of a failure, the plan too."""
        result = done.result
        line = report.as_json(result, path=path, version=self._versions[path])
        try:
            self._file.write(line + "\n")
            self._file.flush()
            if not result.is_ok:
                note = f"{result.findings[0].property}: {result.findings[0].text}"
                target = self._failures / f"{result.scenario}-{result.seed}.json"
                target.write_text(plan_file.dump(plan_from(path, result.seed), note), "utf-8")
        except OSError as error:
            raise UsageError(
                f"cannot write to {self._directory}: {error.strerror or error}; "
                "what was written before is kept, and the same command goes on from there"
            ) from None

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # an error was reported when the line was added
            self._file.close()


def _facts(line: str) -> dict[str, Any] | None:
    """A line's result; None if the line is incomplete or damaged."""
    try:
        facts = json.loads(line)
    except ValueError:
        return None
    is_result = isinstance(facts, dict) and {"path", "version", "seed", "scenario"} <= facts.keys()
    return facts if is_result else None
