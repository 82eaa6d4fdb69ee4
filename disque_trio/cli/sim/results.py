"""The results of a sweep as a file of JSON lines, from which a later sweep continues."""

import fcntl
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

    @property
    def elsewhere(self) -> int:
        """How many seeds another sweep has stored since this one began."""


class DirectoryStore:
    """Results in a directory."""

    def __init__(self, directory: str, versions: dict[str, str]) -> None:
        """`versions` has the version of code and scenario, by path; other results do not count."""
        self._versions = versions
        self._directory = directory
        self._failures = Path(directory, FAILURES)
        self._path = Path(directory, FILE)
        self._there: set[tuple[str, str, int, bool]] = set()
        self._read_to = 0
        self.elsewhere = 0
        try:
            self._failures.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a+", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write to {directory}: {error.strerror or error}") from None

    def kept(self) -> Iterator[Kept]:
        """The complete lines of the same versions."""
        with self._path.open("rb") as file:
            for line in file:
                facts = _facts(line)
                if facts is not None and self._versions.get(facts["path"]) == facts["version"]:
                    yield facts["path"], report.from_plain(facts)

    def costs(self, engine: str) -> dict[Key, float]:
        """The costs in all lines; the latest counts."""
        with self._path.open("rb") as file:
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
            if not self._write(line):
                return
            if not result.is_ok:
                note = f"{result.findings[0].property}: {result.findings[0].text}"
                target = self._failures / f"{result.scenario}-{result.seed}.json"
                target.write_text(plan_file.dump(plan_from(path, result.seed), note), "utf-8")
        except OSError as error:
            raise UsageError(
                f"cannot write to {self._directory}: {error.strerror or error}; "
                "earlier results are kept, and the same command continues from them"
            ) from None

    def _write(self, line: str) -> bool:
        """Append the line, unless another sweep has appended one about the same seed."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            other = b"\n"
            with self._path.open("rb") as file:
                file.seek(self._read_to)
                for other in file:
                    if (facts := _facts(other)) is not None:
                        self._there.add(_seed(facts))
                self._read_to = file.tell()
            seed = _seed(json.loads(line))
            if seed in self._there:
                self.elsewhere += 1
                return False
            # Another sweep may have died while it wrote a line.
            self._file.write(("" if other.endswith(b"\n") else "\n") + line + "\n")
            self._file.flush()
            return True
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # an error was reported when the line was added
            self._file.close()


def _seed(facts: dict[str, Any]) -> tuple[str, str, int, bool]:
    """Which row it is. A seed whose second run differs has a second one."""
    again = any(each["property"] == "determinism" for each in facts.get("findings", ()))
    return facts["path"], facts["version"], facts["seed"], again


def _facts(line: str | bytes) -> dict[str, Any] | None:
    """A line's result; None if the line is incomplete or damaged."""
    try:
        facts = json.loads(line)
    except ValueError:
        return None
    is_result = isinstance(facts, dict) and {"path", "version", "seed", "scenario"} <= facts.keys()
    return facts if is_result else None
