"""The properties that can be checked from rows alone, as queries on a whole lake.

Each check is a view `check_NAME` of violations, with the columns of `COLUMNS`; the view
`violations` is the union of all. A check reports no violation that the checkers in Python
(`sim.checkers`, used by `sim replay`) do not report. It may find fewer, since it groups rows by job
instead of following all of them in order; `WEAKER` says which ones it misses.
tests/pipeline/lake/test_checks.py runs both on the same traces.
"""

from importlib import import_module
from typing import Final

import attrs

COLUMNS: Final = {
    "property": "the violated property (docs/guarantees.md)",
    "scenario": "the scenario's name; `live` for live nodes",
    "run": "the run",
    "seed": "the seed",
    "job": "the job",
    "node": "the node that violated it; null if unknown",
    "time": "when, microseconds; null if it shows only at the end of the run",
    "detail": "what was observed, and what was required",
}
_ORDER: Final = ("s3", "s4", "s5", "s6", "s7", "l1", "l3", "duplicates")


@attrs.frozen
class Check:
    """One check."""

    name: str
    about: str
    """What must hold, and how the query checks it."""
    weaker: str
    """What only the checkers in Python find; empty if there is nothing."""
    sql: str

    @property
    def view(self) -> str:
        """The name of its view in SQL."""
        return f"check_{self.name}"

    @property
    def columns(self) -> dict[str, str]:
        """What each column means."""
        return COLUMNS

    @property
    def line(self) -> str:
        """What must hold, on one line."""
        return " ".join(self.about.partition("\n\n")[0].split())


def _check(name: str) -> Check:
    module = import_module(f"{__name__}.{name}")
    return Check(name, (module.__doc__ or "").strip(), module.WEAKER, module.SQL)


CHECKS: Final = {name: _check(name) for name in _ORDER}
"""By name."""

VIOLATIONS: Final = " UNION ALL ".join(f"SELECT * FROM {each.view}" for each in CHECKS.values())
"""The violations of all checks."""
