"""The table of `docs/simulation.md`: by property, the mutants that `make test` sees it catch. Run
this module to write it."""

from typing import Final

from disque_trio.sim.checkers.properties import PROPERTIES
from tests.sim.mutants.mutant import HERE, Mutant, all_mutants

PAGE: Final = HERE.parents[2] / "docs" / "simulation.md"
BEGIN: Final = "<!-- The table is written by tests/sim/mutants/listing.py. -->\n\n"
END: Final = "\n<!-- End of the table. -->"


def table() -> str:
    """By property: the mutants that violate it."""
    rows = ["| property | does not hold with |", "|---|---|"]
    for name, meaning in PROPERTIES.items():
        shown = [f"`{each.name}`" for each in all_mutants().values() if shows(each, name)]
        rows.append(f"| {name}: {meaning} | {', '.join(shown)} |")
    return "\n".join(rows) + "\n"


def shows(mutant: Mutant, name: str) -> bool:
    """Does it show, each time the tests run, that the judge can find this property violated?"""
    return name in mutant.shows


def page(text: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
