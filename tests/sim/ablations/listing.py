"""The list of ablations and of what the judge finds in each: `scenarios/ablations.toml` and the
table in `docs/simulation.md`. Run this module to write both."""

import json
from pathlib import Path
from typing import Final

from disque_trio.sim.checkers.properties import PROPERTIES
from tests.sim.test_ablations import FOUND, UNFOUND, Break, Case, named

ROOT: Final = Path(__file__).parents[3]
TOML: Final = ROOT / "scenarios" / "ablations.toml"
PAGE: Final = ROOT / "docs" / "simulation.md"
BEGIN: Final = "<!-- The table is written by tests/sim/ablations/listing.py. -->\n\n"
END: Final = "\n<!-- End of the table. -->"

_HEAD: Final = """\
# What is broken on purpose, one thing at a time, and what the judge must find then. This is no
# scenario: tests/sim/test_ablations.py does the breaking, and the list is written from it.
# `make ablations` runs it.
#
#   breaks   what the broken node does
#   finds    properties and causes of duplicates, each of which is found
#   seeds    within so many seeds
#   costs    what is more than in the intact node; no promise is broken
#   plan     the plan of tests/sim/ablations/conditions.py, or the scenario, that shows it

schema = 1
"""


def listed() -> str:
    """`scenarios/ablations.toml`."""
    found = [
        f"\n[ablation.{named(case)}]\nbreaks = {_told(named(case), case.breaks)}\n"
        f"finds = {json.dumps(case.finds.split())}\nseeds = {case.seeds}\n"
        f"plan = {json.dumps(case.plan.__name__)}\n"
        for case in FOUND
    ]
    costly = [
        f"\n[ablation.{price.name}]\nbreaks = {_told(price.name, price.breaks)}\n"
        f"costs = {json.dumps(price.metric)}\nplan = {json.dumps(price.plan.__name__)}\n"
        for price in UNFOUND
    ]
    return "".join([_HEAD, *found, *costly])


def _told(name: str, breaks: Break) -> str:
    kind, _, message = name.partition("-")
    if kind == "ignoring":
        return json.dumps(f"Nothing is done upon {message.upper()}.")
    return json.dumps(" ".join((breaks.__doc__ or "").split()))


def table() -> str:
    """By property: the ablations that violate it."""
    rows = ["| property | does not hold if |", "|---|---|"]
    for name, meaning in PROPERTIES.items():
        shown = [f"`{named(case)}`" for case in FOUND if shows(case, name)]
        rows.append(f"| {name}: {meaning} | {', '.join(shown)} |")
    return "\n".join(rows) + "\n"


def shows(case: Case, name: str) -> bool:
    """Does this case show that the judge can find this property violated?"""
    return name in case.finds.split()


def page(text: str) -> str:
    """`docs/simulation.md` with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after


if __name__ == "__main__":
    TOML.write_text(listed(), "utf-8")
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
