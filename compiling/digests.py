"""Plays the same plans in both forms: ``python -m compiling.digests``. Their digests must be equal.

A process imports one form of the package, so each form is played by a process of its own.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from compiling.layout import ROOT, TARGET
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.statemachine.form import FORM

SCENARIOS: Final = (
    "swarm", "swarm", "swarm", "kill-restart-aof", "split-brain-halves", "meetings", "pipelines",
    "memory-squeeze",
)  # fmt: skip
"""Played in turn, each time with the next seed."""
PLACES: Final = {"pure": ROOT, "compiled": TARGET}


def main() -> int:
    """Compare both forms, or play one of them. The exit status."""
    parser = argparse.ArgumentParser(prog="python -m compiling.digests", description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--play", action="store_true", help="print the digests of this form")
    options = parser.parse_args()
    if options.play:
        sys.stdout.write("\n".join(play(options.seeds)) + "\n")
        return 0
    told = compare(options.seeds, PLACES)
    sys.stdout.write("\n".join(told or [f"{options.seeds} digests are the same"]) + "\n")
    return bool(told)


def play(seeds: int) -> list[str]:
    """The form, then a line for each plan: scenario, seed, digest."""
    lines = [FORM]
    for seed in range(seeds):
        name = SCENARIOS[seed % len(SCENARIOS)]
        plan = expand(load(str(ROOT / "scenarios" / f"{name}.toml")), seed)
        lines.append(f"{name} {seed} {simulate(plan).digest}")
    return lines


def compare(seeds: int, places: dict[str, Path]) -> list[str]:
    """What differs. Both forms are played at the same time, each from its place."""
    command = [sys.executable, "-m", "compiling.digests", "--play", "--seeds", str(seeds)]
    running = {
        form: subprocess.Popen(command, env=environment(place), stdout=subprocess.PIPE, text=True)
        for form, place in places.items()
    }
    told = {form: process.communicate()[0].split("\n") for form, process in running.items()}
    if any(process.returncode for process in running.values()):
        return ["a form could not be played to the end"]
    wrong = [
        f"{form}: this is the {lines[0]} form" for form, lines in told.items() if lines[0] != form
    ]
    one, other = (lines[1:] for lines in told.values())
    return wrong + [f"{a} or {b}" for a, b in zip(one, other, strict=True) if a != b]


def environment(place: Path) -> dict[str, str]:
    """In which the package of this place is imported, also by processes that a process starts."""
    path = os.pathsep.join([str(place), str(ROOT)])
    return {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": path}


if __name__ == "__main__":
    sys.exit(main())
