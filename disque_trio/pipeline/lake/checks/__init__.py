"""The properties that rows alone can judge, as queries: what `sim replay` says, of a whole lake.

Each check is a view `check_NAME` of violations, with the columns of `COLUMNS`; the view
`violations` has all of them. A check never accuses where the Python judge (`sim.checkers`) acquits;
where rows grouped by job cannot tell as much as a fold over all of them, it finds less, and its
`WEAKER` says what. tests/pipeline/lake/test_checks.py holds both to the same traces.
"""

from importlib import import_module
from typing import Final

import attrs

COLUMNS: Final = {
    "property": "which one does not hold (docs/guarantees.md)",
    "scenario": "the scenario's name; `live` for live nodes",
    "run": "which run of it",
    "seed": "the seed",
    "job": "the job",
    "node": "the node that has done wrong; null if it cannot be said",
    "time": "when, microseconds; null if it shows in the end alone",
    "detail": "what was seen, and what was due",
}
_ORDER: Final = ("s3", "s4", "s5", "s6", "s7", "l1", "l3", "duplicates")


@attrs.frozen
class Check:
    """One of them."""

    name: str
    about: str
    """What must hold, and how it is asked."""
    weaker: str
    """What the judge finds that this does not; empty if there is nothing."""
    sql: str

    @property
    def view(self) -> str:
        """What it is called in SQL."""
        return f"check_{self.name}"

    @property
    def columns(self) -> dict[str, str]:
        """What each column means."""
        return COLUMNS

    @property
    def line(self) -> str:
        """What must hold, in a line."""
        return " ".join(self.about.partition("\n\n")[0].split())


def _check(name: str) -> Check:
    module = import_module(f"{__name__}.{name}")
    return Check(name, (module.__doc__ or "").strip(), module.WEAKER, module.SQL)


CHECKS: Final = {name: _check(name) for name in _ORDER}
"""By name."""

VIOLATIONS: Final = " UNION ALL ".join(f"SELECT * FROM {each.view}" for each in CHECKS.values())
"""What all of them find."""
