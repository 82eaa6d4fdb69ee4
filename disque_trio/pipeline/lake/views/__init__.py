"""The views of a lake, one in each file of this package.

A file's docstring says what a row is, `COLUMNS` what each column means, and `SQL` defines the view
from the tables and earlier views. They are temporary views of a Spark session: nothing is stored,
and a query sees everything that has been committed to the lake.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Final

import attrs

_TABLES: Final = {
    "rows": 'one row for each event of a trace (docs/simulation.md, "Traces")',
    "traces": "one row for each trace: its plan, and what the plan entitles its jobs to",
    "results": "one row for each seed of a sweep: what the judge has said of it",
}
TABLES: Final = tuple(_TABLES)
_ORDER: Final = (
    "runs",
    "verdicts",
    "violations",
    "adds",
    "jobs",
    "deliveries",
    "copies",
    "copies_over_time",
    "under_replication",
    "latency",
    "throughput",
    "federation",
    "clock_error",
    "coverage",
    "seeds",
    "causes",
    "failures",
)
"""A view uses tables and views that precede it here."""


@attrs.frozen
class View:
    """One view of a lake."""

    name: str
    about: str
    """What a row is, and how to interpret it."""
    columns: Mapping[str, str]
    """What each column means."""
    sql: str

    @property
    def line(self) -> str:
        """What a row is, on one line."""
        return " ".join(self.about.partition("\n\n")[0].split())


def _view(name: str) -> View:
    module = import_module(f"{__name__}.{name}")
    return View(name, (module.__doc__ or "").strip(), module.COLUMNS, module.SQL)


VIEWS: Final = {name: _view(name) for name in _ORDER}
"""By name, in the order of creation."""


def lines() -> dict[str, str]:
    """All tables and views, with a line about each."""
    return _TABLES | {view.name: view.line for view in VIEWS.values()}
