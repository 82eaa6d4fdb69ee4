"""Arguments of the programs that the Makefile runs."""

import argparse

from disque_trio.cli.sim.options import SEEDS
from disque_trio.sim.scenarios.file import ScenarioError, load
from disque_trio.sim.scenarios.scenario import Scenario


def seeds(word: str) -> range:
    """FROM:TO, or one seed."""
    try:
        found = SEEDS.read(word)
    except ValueError:
        found = ""
    if not isinstance(found, range):
        raise argparse.ArgumentTypeError(f"{word!r} is not a range of seeds, such as 0:10")
    return found


def scenario(path: str) -> Scenario:
    """The one in this file."""
    try:
        return load(path)
    except (OSError, ScenarioError) as error:
        raise argparse.ArgumentTypeError(f"cannot read {path}: {error}") from None
