"""The results of a sweep in a lake, from which a later sweep continues.

Results are committed in portions; a portion is in the lake completely or not at all.
"""

import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from disque_trio.cli.sim import report
from disque_trio.cli.sim.collector import Collected
from disque_trio.cli.sim.execution import Result
from disque_trio.cli.sim.pool import Done
from disque_trio.cli.sim.results import Kept, Key
from disque_trio.pipeline import results
from disque_trio.pipeline.lake.store import Lake
from disque_trio.pipeline.results import Results
from disque_trio.pipeline.run_writer import RunWriter
from disque_trio.sim.scenarios.scenario import Scenario
from disque_trio.terminal.options import UsageError

_PORTION: Final = 5_000
"""Results in one file, at most."""
_PATIENCE_S: Final = 60.0
"""How long a result may wait for its commit, and be lost if this process ends."""


class LakeStore:
    """Results in a lake."""

    def __init__(
        self,
        path: str,
        sweep: str,
        versions: dict[str, str],
        scenarios: Mapping[str, Scenario] | None = None,
    ) -> None:
        """`versions` has the version of code and scenario, by path; other results do not count.
        The scenarios are by path, too."""
        self._scenarios = scenarios or {}
        lake = Lake.open(path, create=True)
        self._versions = versions
        self._results = Results(lake, sweep, commit_of(Path(__file__)))
        self._piece: list[tuple[str, Done]] = []
        self._waiting = 0
        self._lock = threading.Lock()
        self._alarm: threading.Timer | None = None
        self._trouble: Exception | None = None
        if len(set(versions.values())) < len(versions):
            raise UsageError("two of the scenarios are identical: a lake cannot distinguish them")

    def kept(self) -> Iterator[Kept]:
        """Earlier results of the same code and the same scenarios."""
        paths = {version: path for path, version in self._versions.items()}
        for facts in results.read(self._results.lake, paths):
            yield paths[facts["version"]], _result(facts)

    def costs(self, engine: str) -> dict[Key, float]:
        """The costs of seeds of scenarios of these names."""
        found = results.costs(self._results.lake, engine)
        paths = {each.name: path for path, each in self._scenarios.items()}
        return {
            (paths[name], seed): seconds for (name, seed), seconds in found.items() if name in paths
        }

    def add(self, path: str, done: Done) -> None:
        """Store it once all that were run together with it are there."""
        self._piece.append((path, done))
        if not done.ends_piece:
            return
        with self._lock:
            if self._trouble is not None:
                raise self._trouble
            rows = [self._row(*each) for each in self._piece]
            parts = done.collected.parts if done.collected else ()
            self._results.add(done.result.scenario, rows, parts)
            self._waiting += len(rows)
            self._piece.clear()
            if self._waiting >= _PORTION:
                self._commit()
            elif self._alarm is None:
                self._alarm = threading.Timer(_PATIENCE_S, self._ring)
                self._alarm.daemon = True
                self._alarm.start()

    def close(self) -> None:
        """Commit the rest."""
        with self._lock:
            self._commit()

    @property
    def elsewhere(self) -> int:
        """How many seeds another sweep has stored since this one began."""
        return self._results.elsewhere

    def _row(self, path: str, done: Done) -> dict[str, Any]:
        result = done.result
        version = self._versions[path]
        # A second run that differs from the first one has nothing collected.
        run = RunWriter.name_of(version, str(result.seed), result.digest)
        collected = done.collected or Collected(run, {})
        facts = attrs.asdict(result)
        facts["ok"] = facts.pop("is_ok")
        if path in self._scenarios:  # what some seed should show: the report counts over all seeds
            facts["marks"] = {
                **dict.fromkeys(self._scenarios[path].expect.sometimes, 0),
                **facts["marks"],
            }
        facts |= {"run": collected.run, "coverage": collected.coverage, "plan": collected.plan}
        return {**facts, "version": version}

    def _ring(self) -> None:
        """In a thread of its own: a result has waited for `_PATIENCE_S`."""
        with self._lock:
            try:
                self._commit()
            except Exception as error:  # raised when the next result is added
                self._trouble = error

    def _commit(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._results.commit_all()
        self._waiting = 0


def commit_of(file: Path) -> str:
    """The commit that a file is checked out from, with `+` if anything was changed; or nothing."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(file.parent), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    try:
        # An installed package may lie in a repository that is not its own.
        git("ls-files", "--error-unmatch", file.name)
        return git("describe", "--always", "--dirty=+", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return ""


def _result(facts: dict[str, Any]) -> Result:
    return report.from_plain({**facts, "is_ok": facts["ok"]})
