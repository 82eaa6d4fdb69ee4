"""The results of a sweep in a lake, from which it goes on later.

What comes in is committed in portions. Whatever happens, a portion is there whole or not at all.
"""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs

from disque_trio.cli.frame import UsageError
from disque_trio.cli.sim import report
from disque_trio.cli.sim.execution import Result
from disque_trio.cli.sim.harvest import Crop
from disque_trio.cli.sim.pool import Done
from disque_trio.cli.sim.results import Kept
from disque_trio.pipeline import results
from disque_trio.pipeline.lake.store import Lake
from disque_trio.pipeline.results import Results

_PORTION: Final = 5_000
"""Results in one file, at most."""
_PATIENCE_S: Final = 60.0
"""As long may a result wait, and be lost if this process is."""


class LakeStore:
    """What is kept in a lake."""

    def __init__(self, path: str, sweep: str, versions: dict[str, str]) -> None:
        """`versions` tell, by path, which code and scenario a result must be of to count."""
        lake = Lake.open(path, create=True)
        self._versions = versions
        self._results = Results(lake, sweep, commit_of(Path(__file__)))
        self._piece: list[tuple[str, Done]] = []
        self._waiting = 0
        self._since = time.monotonic()
        if len(set(versions.values())) < len(versions):
            raise UsageError("two of the scenarios are the same: a lake cannot tell them apart")

    def kept(self) -> Iterator[Kept]:
        """Those of the code and the scenarios of today."""
        paths = {version: path for path, version in self._versions.items()}
        for facts in results.read(self._results.lake, paths):
            yield paths[facts["version"]], _result(facts)

    def add(self, path: str, done: Done) -> None:
        """Keep it, as soon as all have come that were run with it."""
        self._piece.append((path, done))
        if done.ends_piece:
            for each in self._piece:
                self._bring_in(*each)
            self._piece.clear()
            is_time = time.monotonic() - self._since > _PATIENCE_S
            if is_time or self._waiting >= _PORTION:
                self._commit()

    def close(self) -> None:
        """Nothing more comes."""
        self._commit()

    def _bring_in(self, path: str, done: Done) -> None:
        result = done.result
        # A second run, which differed from the first one.
        crop = done.crop or Crop(f"{result.scenario}-{result.seed}-again", {})
        facts = attrs.asdict(result)
        facts["ok"] = facts.pop("is_ok")
        facts |= {"run": crop.run, "coverage": crop.coverage, "plan": crop.plan}
        self._results.add({**facts, "version": self._versions[path]}, crop.parts)
        self._waiting += 1

    def _commit(self) -> None:
        self._results.commit_all()
        self._waiting = 0
        self._since = time.monotonic()


def commit_of(file: Path) -> str:
    """The commit that a file is checked out from, with `+` if anything was changed; or nothing."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(file.parent), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    try:
        # An installed package may lie in somebody else's repository.
        git("ls-files", "--error-unmatch", file.name)
        return git("describe", "--always", "--dirty=+", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return ""


def _result(facts: dict[str, Any]) -> Result:
    return report.from_plain({**facts, "is_ok": facts["ok"]})
