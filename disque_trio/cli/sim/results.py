"""The results of a sweep as a file to which lines are added, so that a sweep can go on later."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from disque_trio.cli.frame import UsageError
from disque_trio.cli.sim import report
from disque_trio.cli.sim.execution import Result
from disque_trio.cli.sim.pool import Done
from disque_trio.cli.sim.sources import plan_from
from disque_trio.sim.scenarios import plan_file

FILE = "results.jsonl"
FAILURES = "failures"

Kept = tuple[str, Result]
"""Path of the scenario, and what came of a seed."""


class Keeper(Protocol):
    """Keeps what a sweep finds, and knows what one before it has found."""

    def kept(self) -> Iterator[Kept]:
        """What was found before, of the code and the scenarios of today."""

    def add(self, path: str, done: Done) -> None:
        """Keep it."""

    def close(self) -> None:
        """Nothing more comes. What came is kept. To say it twice does no harm."""


class Store:
    """What is kept in a directory."""

    def __init__(self, directory: str, versions: dict[str, str]) -> None:
        """`versions` tell, by path, which code and scenario a result must be of to count."""
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
        """Lines that are whole, and of the code and the scenarios of today."""
        line = "\n"
        with self._path.open(encoding="utf-8") as file:
            for line in file:
                facts = _facts(line)
                if facts is not None and self._versions.get(facts["path"]) == facts["version"]:
                    yield facts["path"], report.from_plain(facts)
        if not line.endswith("\n"):
            self._file.write("\n")

    def add(self, path: str, done: Done) -> None:
        """Keep it; of a failure, the plan too."""
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
        """Nothing more comes."""
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
