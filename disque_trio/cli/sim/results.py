"""The results of a sweep as a file to which lines are added, so that a sweep can go on later."""

import json
from collections.abc import Iterator
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from disque_trio.cli.frame import UsageError
from disque_trio.cli.sim import report
from disque_trio.cli.sim.execution import Result
from disque_trio.sim import planfile
from disque_trio.sim.plan import Plan

FILE = "results.jsonl"
FAILURES = "failures"

Key = tuple[str, int]
"""Path of the scenario, and seed."""


class Store:
    """What is kept in a directory; without one, nothing is."""

    def __init__(self, directory: str | None, versions: dict[str, str]) -> None:
        """`versions` tell, by path, which code and scenario a result must be of to count."""
        self._versions = versions
        self._file: TextIOWrapper | None = None
        self.found: dict[Key, Result] = {}
        if directory is None:
            return
        self._directory = directory
        self._failures = Path(directory, FAILURES)
        path = Path(directory, FILE)
        try:
            self._failures.mkdir(parents=True, exist_ok=True)
            if path.exists():
                self.found.update(self._read(path))
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write to {directory}: {error.strerror or error}") from None

    def _read(self, path: Path) -> Iterator[tuple[Key, Result]]:
        text = path.read_text("utf-8")
        for line in text.splitlines(keepends=True):
            facts = _facts(line)
            if facts is not None and self._versions.get(facts["path"]) == facts["version"]:
                yield (facts["path"], facts["seed"]), report.from_plain(facts)
        if text and not text.endswith("\n"):
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def add(self, path: str, result: Result, plan: Plan | None) -> None:
        """Keep it; of a failure, the plan too."""
        self.found[path, result.seed] = result
        if self._file is None:
            return
        line = report.as_json(result, path=path, version=self._versions[path])
        try:
            self._file.write(line + "\n")
            self._file.flush()
            if plan is not None:
                note = f"{result.findings[0].property}: {result.findings[0].text}"
                target = self._failures / f"{result.scenario}-{result.seed}.json"
                target.write_text(planfile.dump(plan, note), "utf-8")
        except OSError as error:
            raise UsageError(
                f"cannot write to {self._directory}: {error.strerror or error}; "
                "what was written before is kept, and the same command goes on from there"
            ) from None

    def close(self) -> None:
        """Nothing more comes."""
        if self._file is not None:
            with suppress(OSError):  # what could not be written was told when it was to be written
                self._file.close()


def _facts(line: str) -> dict[str, Any] | None:
    """A line's result; None for one that was never finished, or that somebody has spoilt."""
    try:
        facts = json.loads(line)
    except ValueError:
        return None
    is_result = isinstance(facts, dict) and {"path", "version", "seed", "scenario"} <= facts.keys()
    return facts if is_result else None
