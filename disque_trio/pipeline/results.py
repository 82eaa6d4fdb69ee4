"""Results of seeds as a table of a lake: a row for each, read when a sweep continues."""

import platform
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from disque_trio.pipeline.lake import shape
from disque_trio.pipeline.lake.files import LakeError, Part
from disque_trio.pipeline.lake.store import Lake

_PYTHON = f"{platform.python_implementation()} {platform.python_version()}"

_FACTS = [name for name in shape.RESULTS.names if name not in {"coverage", "plan"}]
"""The columns that continuing a sweep needs: the others are large."""


@attrs.define
class Results:
    """What one sweep adds to a lake, in portions; only what is committed counts."""

    lake: Lake
    sweep: str
    commit: str
    """The commit of the code; empty if it is in no repository."""
    _rows: dict[str, list[dict[str, Any]]] = attrs.Factory(lambda: defaultdict(list))
    _parts: list[Part] = attrs.Factory(list)
    _portions: int = 0

    def add(self, facts: dict[str, Any], parts: Iterable[Part]) -> None:
        """The facts of one seed, `scenario` among them, and files that belong to it."""
        row = {
            "sweep": self.sweep,
            "at": time.time_ns() // 1_000,
            "commit": self.commit,
            "python": _PYTHON,
            **facts,
        }
        for name in ("duplicates", "marks", "coverage"):
            row[name] = list(facts[name].items())
        self._rows[row.pop("scenario")].append(row)
        self._parts.extend(parts)

    def commit_all(self) -> None:
        """Commit what was added."""
        if not self._rows:
            return
        parts = list(self._parts)
        for scenario, rows in self._rows.items():
            content = pa.Table.from_pylist(rows, schema=shape.RESULTS)
            name = f"{self.sweep}-results-{self._portions}"
            parts.append(self.lake.write("results", scenario, name, content))
        self.lake.commit(parts)
        self._portions += 1
        self._rows.clear()
        self._parts.clear()


def read(lake: Lake, versions: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The facts of all seeds of these versions, the oldest first, but for coverage and plans."""
    wanted = pa.array(sorted(set(versions)))
    for scenario, table in _tables(lake, _FACTS):
        for facts in table.filter(pc.is_in(table["version"], value_set=wanted)).to_pylist():
            for name in ("duplicates", "marks"):
                facts[name] = dict(facts[name] or ())
            yield {**facts, "scenario": scenario}


def costs(lake: Lake, engine: str) -> dict[tuple[str, int], float]:
    """The seconds of a processor that each seed of each scenario has taken in this engine; the
    latest sweep counts."""
    found: dict[tuple[str, int], float] = {}
    for scenario, table in _tables(lake, ["seed", "engine", "seconds"]):
        same = table.filter(pc.equal(table["engine"], engine))
        keys = ((scenario, seed) for seed in same["seed"].to_pylist())
        found.update(zip(keys, same["seconds"].to_pylist(), strict=True))
    return found


def _tables(lake: Lake, columns: list[str]) -> Iterator[tuple[str, pa.Table]]:
    """Results by scenario, the oldest first."""
    for part in lake.parts("results"):
        scenario = unquote(Path(part.path).parent.name.partition("=")[2])
        try:
            yield scenario, pq.read_table(lake.where(part), columns=columns, partitioning=None)
        except (OSError, pa.ArrowException) as error:
            raise LakeError(f"{lake.where(part)}: {error}") from None
