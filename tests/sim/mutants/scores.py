"""How many drawn mutants were caught, by part of the package, and why the others were not."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import attrs
from rich.table import Table

from tests.sim.mutants.hunt import Catch
from tests.sim.mutants.mutant import HERE

FILE: Final = HERE / "survivors.toml"
KINDS: Final = ("equivalent", "cost", "hole")
"""Nobody could tell; it breaks no promise, but takes time, memory or messages; a property or a plan
is missing."""


@attrs.frozen(kw_only=True)
class Survivor:
    """Why a drawn mutant was not caught."""

    kind: str
    line: str
    """What the mutant changes. Mutants are numbered within their functions, so after a change of a
    function the same name may be another mutant's."""
    why: str


def survivors(path: Path = FILE) -> dict[str, Survivor]:
    """Those that were looked at, by name."""
    rows = tomllib.loads(path.read_text("utf-8"))
    return {name: Survivor(**row) for name, row in rows.items()}


def score(caught: Iterable[Catch], known: Mapping[str, Survivor]) -> dict[str, dict[str, int]]:
    """By part of the package: how many were drawn, caught, are equivalent, cost something, are
    holes, are where no seed came, and survived and were not looked at. Those that are not finished
    are left out."""
    found: dict[str, dict[str, int]] = {}
    for each in caught:
        if each.outcome == "not finished":
            continue
        row = found.setdefault(each.mutant.partition("/")[0], dict.fromkeys(COLUMNS, 0))
        row["drawn"] += 1
        if each.found:
            row["caught"] += 1
        elif each.mutant in known:
            row[known[each.mutant].kind] += 1
        else:
            row["not looked at" if each.is_reached else NOT_REACHED] += 1
    return dict(sorted(found.items()))


NOT_REACHED: Final = "not reached"
COLUMNS: Final = ("drawn", "caught", *KINDS, NOT_REACHED, "not looked at")


def table(caught: Iterable[Catch], known: Mapping[str, Survivor]) -> Table:
    """The score: of those that are not equivalent."""
    shown = Table("part", *COLUMNS, "score", box=None, header_style="bold")
    rows = score(caught, known)
    total = {name: sum(row[name] for row in rows.values()) for name in COLUMNS}
    for part, row in (rows | {"all": total}).items():
        counted = row["drawn"] - row["equivalent"]
        percent = f"{100 * row['caught'] // counted} %" if counted else ""
        shown.add_row(part, *map(str, row.values()), percent)
    return shown
