"""`python -m tests.sim.mutants.trial NAME PLAN,… FIRST LAST`: one mutant, in its own process.

The plans take turns. Runs the turns from FIRST to before LAST until one of them is not passed, and
prints a line of JSON for each. With an empty NAME the node is intact.
"""

import json
import sys
from importlib import import_module

from tests.sim.mutants.mutant import all_mutants


def main() -> None:
    """Put the mistake in place, and only then import what runs seeds."""
    name, plans, first, last = sys.argv[1:]
    if name:
        all_mutants()[name].install()
    for ran in import_module("tests.sim.mutants.seeds").run(
        plans.split(","), int(first), int(last)
    ):
        sys.stdout.write(json.dumps(ran) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
