"""Finds the files of scenarios, for commands that run seeds again."""

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

import attrs

from disque_trio.cli.sim.sources import scenario_digest, scenario_from
from disque_trio.terminal.options import UsageError


@attrs.frozen
class Reruns:
    """The scenarios in some folders: their files and digests, by name."""

    files: dict[str, dict[str, str]]

    @classmethod
    def among(cls, folders: Iterable[str]) -> "Reruns":
        """All scenarios in the folders and below. Files that are no scenarios are passed over."""
        files: dict[str, dict[str, str]] = {}
        for path in (path for each in folders for path in sorted(Path(each).rglob("*.toml"))):
            try:
                scenario = scenario_from(str(path))
            except UsageError:
                continue
            files.setdefault(scenario.name, {}).setdefault(scenario_digest(scenario), _near(path))
        return cls(files)

    def command(self, scenario: str, seed: int, version: str) -> str:
        """What runs a seed again that a sweep of this version (`results`) has run; empty if there
        is no such file."""
        found = self.files.get(scenario, {})
        _, engine, _, digest = f"---{version}".rsplit("-", 3)
        path = found.get(digest) or next(iter(found.values()), "")
        if not path:
            return ""
        other = f" --engine {engine}" if engine not in {"", "heap"} else ""
        changed = "" if digest in found else "  # the file has changed since"
        return f"disque-trio sim run {shlex.quote(path)} --seed {seed}{other}{changed}"


def _near(path: Path) -> str:
    """The path from here, or from the root if the file is elsewhere."""
    there = os.path.relpath(path.resolve())
    return str(path.resolve()) if there.startswith(os.pardir) else there
