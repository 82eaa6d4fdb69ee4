"""What can be asked of a lake without writing SQL: views, each in a file of its own.

Each file's docstring says what a row is, `COLUMNS` what each column means, and `SQL` how it is made
from the tables and from the views before it. They are temporary views of a Spark session: nothing
is stored, and what was ingested a moment ago is in them.
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
"""A view is made of tables and of views before it."""


@attrs.frozen
class View:
    """One of them."""

    name: str
    about: str
    """What a row is, and what to know about it."""
    columns: Mapping[str, str]
    """What each column means."""
    sql: str

    @property
    def line(self) -> str:
        """What a row is, in a line."""
        return " ".join(self.about.partition("\n\n")[0].split())


def _view(name: str) -> View:
    module = import_module(f"{__name__}.{name}")
    return View(name, (module.__doc__ or "").strip(), module.COLUMNS, module.SQL)


VIEWS: Final = {name: _view(name) for name in _ORDER}
"""By name, in the order in which they are made."""


def lines() -> dict[str, str]:
    """Everything that can be asked for, with a line each."""
    return _TABLES | {view.name: view.line for view in VIEWS.values()}
