"""Results of seeds as a table of a lake: a row for each, read when a sweep continues.

Two sweeps may run the same seeds at the same time. The one that commits a seed first has it: the
other one leaves out its own result, and what it has of the seed in the other tables.
"""

import platform
import time
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from disque_trio.pipeline.lake import shape
from disque_trio.pipeline.lake.files import Part
from disque_trio.pipeline.lake.store import SWEEPING, Lake, Version

_PYTHON = f"{platform.python_implementation()} {platform.python_version()}"

_UNREPEATABLE = "determinism"
"""The property that a seed violates whose second run differs from the first."""

_FACTS = [name for name in shape.RESULTS.names if name not in {"coverage", "plan"}]
"""The columns that continuing a sweep needs: the others are large."""


@attrs.frozen
class _Piece:
    """Seeds of a scenario that were run together, and the files that belong to them."""

    scenario: str
    rows: list[dict[str, Any]]
    parts: tuple[Part, ...]


Seed = tuple[str, int, bool]
"""Version, seed, and whether the row says that the seed cannot be repeated: it has another row,
which says what came of its first run."""


@attrs.define
class Results:
    """What one sweep adds to a lake, in portions; only what is committed counts."""

    lake: Lake
    sweep: str
    commit: str
    """The commit of the code; empty if it is in no repository."""
    elsewhere: int = 0
    """Seeds that another sweep had committed when this one would have."""
    _pieces: list[_Piece] = attrs.Factory(list)
    _portions: int = 0
    _there: set[Seed] = attrs.Factory(set)
    _known: set[str] = attrs.Factory(set)
    """The parts that `_there` is read from."""

    def add(self, scenario: str, facts: Iterable[dict[str, Any]], parts: Iterable[Part]) -> None:
        """The facts of seeds that were run together, and the files that belong to them."""
        self._pieces.append(_Piece(scenario, list(map(self._row, facts)), tuple(parts)))

    def _row(self, facts: dict[str, Any]) -> dict[str, Any]:
        row = {
            "sweep": self.sweep,
            "at": time.time_ns() // 1_000,
            "commit": self.commit,
            "python": _PYTHON,
            **facts,
        }
        for name in ("duplicates", "marks", "coverage"):
            row[name] = list(facts[name].items())
        return row

    def commit_all(self) -> None:
        """Commit what was added, but for seeds that are in the lake."""
        if not self._pieces:
            return
        while True:  # another sweep may be quicker
            seen = self.lake.now()
            self._look(seen)
            parts, mine = self._parts()
            if self.lake.commit(parts, (), seen, SWEEPING):
                break
        self._there |= mine
        self.elsewhere += sum(len(piece.rows) for piece in self._pieces) - len(mine)
        self._portions += 1
        self._pieces.clear()

    def _look(self, version: Version) -> None:
        """Read what has been added to the lake since the last look."""
        columns = ["version", "seed", "ok", "findings"]
        for part, _, table in _tables(self.lake, columns, version, self._known):
            self._there.update(map(_seed, table.to_pylist()))
            self._known.add(part.path)

    def _parts(self) -> tuple[list[Part], set[Seed]]:
        """The files of seeds that are not in the lake, and these seeds."""
        parts: list[Part] = []
        mine: set[Seed] = set()
        rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for piece in self._pieces:
            new = [row for row in piece.rows if _seed(row) not in self._there]
            mine.update(map(_seed, new))
            rows[piece.scenario] += new
            parts += self._parts_of(piece, new)
        for scenario, some in rows.items():
            if some:
                content = pa.Table.from_pylist(some, schema=shape.RESULTS)
                name = f"{self.sweep}-results-{self._portions}"
                parts.append(self.lake.write("results", scenario, name, content))
        return parts, mine

    def _parts_of(self, piece: _Piece, new: Sequence[dict[str, Any]]) -> Iterator[Part]:
        """The files of a piece without the rows of seeds that are in the lake."""
        left = {row["run"] for row in piece.rows} - {row["run"] for row in new}
        for part in piece.parts if new else ():
            if not left:
                yield part
                continue
            whole = self.lake.read(part, shape.SCHEMAS[part.table].names)
            is_left = pc.is_in(whole["run"], value_set=pa.array(sorted(left)))
            name = f"{Path(part.path).stem}-rest"
            rest = whole.filter(pc.invert(is_left)).cast(shape.SCHEMAS[part.table])
            if rest.num_rows:
                yield self.lake.write(part.table, piece.scenario, name, rest)


def _seed(row: dict[str, Any]) -> Seed:
    again = not row["ok"] and any(each["property"] == _UNREPEATABLE for each in row["findings"])
    return row["version"], row["seed"], again


def read(lake: Lake, versions: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The facts of all seeds of these versions, the oldest first, but for coverage and plans."""
    wanted = pa.array(sorted(set(versions)))
    for _, scenario, table in _tables(lake, _FACTS, lake.now()):
        for facts in table.filter(pc.is_in(table["version"], value_set=wanted)).to_pylist():
            for name in ("duplicates", "marks"):
                facts[name] = {key: count for key, count in facts[name] or () if count}
            yield {**facts, "scenario": scenario}


def costs(lake: Lake, engine: str) -> dict[tuple[str, int], float]:
    """The seconds of a processor that each seed of each scenario has taken in this engine; the
    latest sweep counts."""
    found: dict[tuple[str, int], float] = {}
    for _, scenario, table in _tables(lake, ["seed", "engine", "seconds"], lake.now()):
        same = table.filter(pc.equal(table["engine"], engine))
        keys = ((scenario, seed) for seed in same["seed"].to_pylist())
        found.update(zip(keys, same["seconds"].to_pylist(), strict=True))
    return found


def _tables(
    lake: Lake, columns: list[str], version: Version, without: Container[str] = ()
) -> Iterator[tuple[Part, str, pa.Table]]:
    """Results by scenario, the oldest first, but for the parts with these paths."""
    for part in version.parts["results"]:
        if part.path not in without:
            yield part, part.keys["scenario"] or "", lake.read(part, columns)
