"""What becomes of mutants: caught, equivalent, or they survive."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from tests.sim.mutants.mutant import HERE, Mutant

ROOT = HERE.parents[2]


@attrs.frozen(kw_only=True)
class Catch:
    """What became of one mutant."""

    mutant: str
    expected: tuple[str, ...] = ()
    plan: str = ""
    seed: int = 0
    found: dict[str, str] = attrs.Factory(dict)
    """By property: the first violation."""
    runs: int = 0
    """Seeds that it took."""
    cpu: float = 0.0
    """Seconds of processor time."""
    is_equivalent: bool = False
    is_cut_short: bool = False

    @property
    def outcome(self) -> str:
        """In a word or two."""
        if self.is_equivalent:
            return "equivalent"
        if self.found:
            return "caught"
        return "not finished" if self.is_cut_short else "survived"


@attrs.define
class Hunt:
    """Runs mutants for up to so many seeds each, and begins none after `until` (monotonic)."""

    seeds: int
    until: float = float("inf")
    _running: list[subprocess.Popen[str]] = attrs.field(factory=list, init=False)
    _is_stopped: bool = attrs.field(default=False, init=False)

    def run(self, mutant: Mutant) -> Catch:
        """A seed that the intact node does not pass either proves nothing, and is passed over."""
        if mutant.equivalent:
            return Catch(mutant=mutant.name, is_equivalent=True)
        runs, cpu, turn = 0, 0.0, 0
        while turn < self.seeds:
            for ran in self.trial(mutant.name, mutant.plans, turn, self.seeds):
                runs, cpu, turn = runs + 1, cpu + ran["cpu"], ran["turn"] + 1
                if ran["found"] and not self._fails_intact(mutant, ran["turn"]):
                    return Catch(
                        mutant=mutant.name,
                        expected=mutant.finds,
                        plan=ran["plan"],
                        seed=ran["seed"],
                        found=ran["found"],
                        runs=runs,
                        cpu=cpu,
                    )
                if self._is_over():
                    break
            if self._is_over():
                break
        is_cut_short = turn < self.seeds
        return Catch(
            mutant=mutant.name, expected=mutant.finds, runs=runs, cpu=cpu, is_cut_short=is_cut_short
        )

    def _fails_intact(self, mutant: Mutant, turn: int) -> bool:
        return any(ran["found"] for ran in self.trial("", mutant.plans, turn, turn + 1))

    def trial(
        self, name: str, plans: Sequence[str], first: int, last: int
    ) -> Iterator[dict[str, Any]]:
        """What a process of its own says of each seed. RuntimeError: it has not come to that."""
        words = [name, ",".join(plans), str(first), str(last)]
        command = [sys.executable, "-m", f"{__package__}.trial", *words]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            self._running.append(process)
            assert process.stdout is not None
            try:
                yield from map(json.loads, process.stdout)
            except GeneratorExit:
                process.terminate()
                raise
        if process.returncode and not self._is_stopped:
            raise RuntimeError(f"{name or 'the intact node'}: its process has failed, see above")

    def _is_over(self) -> bool:
        return self._is_stopped or time.monotonic() >= self.until

    def stop(self) -> None:
        """Somebody has lost patience: end what runs."""
        self._is_stopped = True
        for process in self._running:
            if process.poll() is None:
                process.terminate()
