"""`python -m tests.sim.mutants.trial`: runs mutants, each in a fork of a process that has imported
everything, so that it begins at once.

Reads a `Trial` as a line of JSON, writes a line for each seed, and then how the fork has ended.
With a trial as its argument it runs that, having imported nothing before: for what is more than the
code of functions.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from importlib import import_module
from typing import Any, Final

import attrs

from tests.sim.mutants.mutant import LIMIT_S, PACKAGE
from tests.sim.mutants.swapping import ElsewhereError, install, swapped

MEMORY: Final = 4 << 30
"""Bytes of addresses. A mutant that takes more has a MemoryError."""

PATIENCE: Final = 100
"""So many times its processor time may a seed take in all: one that waits for ever is ended."""


@attrs.frozen(kw_only=True)
class Trial:
    """Seeds of plans, in a changed package."""

    file: str = ""
    """Below the package; empty: the package is intact."""
    source: str = ""
    plans: tuple[str, ...]
    turns: tuple[int, ...]
    """A turn is a seed of each plan in turn."""
    goes_on: tuple[int, ...] = ()
    """Turns in which the intact node fails, too."""
    engine: str = "heap"
    limit: float = LIMIT_S
    """Seconds of processor time for each seed."""
    stops: bool = False
    """A seed ends at its first violation."""
    has_reach: bool = False
    """Note which statements are come to; all turns are run."""

    def dump(self) -> str:
        """One line."""
        return json.dumps(attrs.asdict(self))


def _run(trial: Trial) -> Iterator[dict[str, Any]]:
    seeds = import_module("tests.sim.mutants.seeds")
    what = (trial.plans, trial.turns, trial.engine, trial.limit)
    if not trial.has_reach:
        yield from seeds.run(*what, trial.goes_on, stops=trial.stops)
        return
    reach = import_module("tests.sim.mutants.reach")
    with reach.watched(reach.places(), PACKAGE) as hits:
        for ran in seeds.run(*what, trial.turns):
            yield ran | {"reach": hex(int("1" + "".join(map(str, hits)), 2))}
            hits[:] = bytes(len(hits))


def _report(trial: Trial) -> None:
    patience = int(PATIENCE * trial.limit)
    signal.alarm(patience)
    for ran in _run(trial):
        signal.alarm(patience)
        sys.stdout.write(json.dumps(ran) + "\n")
        sys.stdout.flush()


def _fork(line: str) -> None:
    """In the fork: never returns."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    trial = Trial(**json.loads(line))
    try:
        with swapped({PACKAGE / trial.file: trial.source}) if trial.file else nullcontext():
            _report(trial)
    except ElsewhereError:
        os.execv(sys.executable, [sys.executable, "-m", "tests.sim.mutants.trial", line])
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Serve until the input ends."""
    if sys.argv[1:]:
        trial = Trial(**json.loads(sys.argv[1]))
        install(PACKAGE / trial.file, trial.source)
        _report(trial)
        return
    import_module("tests.sim.mutants.seeds")
    import_module("tests.sim.mutants.reach")
    import_module("disque_trio.sim.engines.heap.run")
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _fork(line)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(json.dumps({"ended": status}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
