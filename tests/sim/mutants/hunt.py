"""What becomes of mutants: caught, equivalent, or they survive."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import attrs

from tests.sim.mutants.mutant import HERE, LIMIT_S, Mutant
from tests.sim.mutants.operators import Drawn
from tests.sim.mutants.trial import Trial

ROOT: Final = HERE.parents[2]


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
    is_reached: bool = True
    """Does any seed come to its place?"""

    @property
    def outcome(self) -> str:
        """In a word or two."""
        if self.is_equivalent:
            return "equivalent"
        if self.found:
            return "caught"
        if not self.is_reached:
            return "not reached"
        return "not finished" if self.is_cut_short else "survived"


@attrs.frozen(kw_only=True)
class Swarm:
    """What the intact node does in the seeds in which drawn mutants are tried."""

    scenario: str
    engine: str
    failing: tuple[int, ...]
    cpu: tuple[float, ...]
    """By seed."""
    reached: dict[tuple[str, int], tuple[int, ...]]
    """By file and line of a statement: the seeds that come to it."""

    @property
    def limit(self) -> float:
        """What a mutant may take."""
        return max(LIMIT_S, 4 * max(self.cpu, default=0))


@attrs.define
class Hunt:
    """Runs mutants for up to so many seeds each, and begins none after `until` (monotonic)."""

    seeds: int
    until: float = float("inf")
    budget: float = float("inf")
    """Seconds of processor time for each mutant: no further seed is begun after so long."""
    _server: threading.local = attrs.field(factory=threading.local, init=False)
    """By thread: the process that forks its trials."""
    _running: list[subprocess.Popen[str]] = attrs.field(factory=list, init=False)
    _is_stopped: bool = attrs.field(default=False, init=False)

    def run(self, mutant: Mutant) -> Catch:
        """A seed that the intact node does not pass either proves nothing, and is passed over."""
        if mutant.equivalent or mutant.costs:
            return Catch(mutant=mutant.name, is_equivalent=True)
        fields: dict[str, Any] = {
            "file": mutant.file,
            "source": mutant.source(),
            "plans": mutant.plans,
        }
        failing: tuple[int, ...] = ()
        turns = tuple(range(self.seeds))
        while True:
            catch = self._hunt(Trial(**fields, turns=turns, goes_on=failing), mutant.name)
            turn = catch.seed * len(mutant.plans) + mutant.plans.index(
                catch.plan or mutant.plans[0]
            )
            if not catch.found or not self._fails_intact(mutant, turn):
                return attrs.evolve(catch, expected=mutant.finds + mutant.shows)
            failing += (turn,)

    def try_drawn(self, drawn: Drawn, swarm: Swarm) -> Catch:
        """In the seeds of the swarm that come to its place."""
        reached = swarm.reached.get((drawn.file, drawn.statement), ())
        passed = [seed for seed in reached if seed not in swarm.failing]
        turns = tuple(sorted(passed, key=swarm.cpu.__getitem__))  # cheap ones first
        if not turns:
            return Catch(mutant=drawn.name, is_reached=False)
        trial = Trial(
            file=drawn.file,
            source=drawn.source(),
            plans=(swarm.scenario,),
            turns=turns,
            engine=swarm.engine,
            limit=swarm.limit,
            stops=True,
        )
        return self._hunt(trial, drawn.name)

    def _hunt(self, trial: Trial, name: str) -> Catch:
        runs, cpu, where = 0, 0.0, dict[str, Any]()
        for ran in self.trial(trial):
            if "ended" in ran:
                if ran["ended"] and not self._is_stopped:
                    # Of the mutant, or it would have failed before: it ends the process, or worse.
                    where = {"found": {"died": f"status {ran['ended']}"}}
                continue
            runs, cpu = runs + 1, cpu + ran["cpu"]
            if ran["found"] and ran["turn"] not in trial.goes_on:
                where = {"plan": ran["plan"], "seed": ran["seed"], "found": ran["found"]}
            elif self._is_over() or cpu >= self.budget:
                break
        is_cut_short = not where and runs < len(trial.turns) and cpu < self.budget
        return Catch(mutant=name, **where, runs=runs, cpu=cpu, is_cut_short=is_cut_short)

    def _fails_intact(self, mutant: Mutant, turn: int) -> bool:
        ran, *_ = self.trial(Trial(plans=mutant.plans, turns=(turn,)))
        if "found" not in ran:
            raise RuntimeError(f"the intact node cannot run {', '.join(mutant.plans)}, see above")
        return bool(ran["found"])

    def look(self, scenario: str, engine: str, seeds: tuple[int, ...]) -> Iterator[dict[str, Any]]:
        """The intact node in these seeds: what is found, and which statements it comes to."""
        trial = Trial(
            plans=(scenario,), turns=seeds, engine=engine, limit=10 * LIMIT_S, has_reach=True
        )
        for ran in self.trial(trial):
            if "ended" not in ran:
                yield ran
            elif ran["ended"] and not self._is_stopped:
                raise RuntimeError(f"the intact node cannot run {scenario}, see above")

    def trial(self, trial: Trial) -> Iterator[dict[str, Any]]:
        """What a process of its own says of each seed, and at last its status. Whoever stops
        reading ends the process."""
        server = getattr(self._server, "process", None) or self._new_server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(trial.dump() + "\n")
        server.stdin.flush()
        is_done = False
        try:
            for line in server.stdout:
                ran = json.loads(line)
                is_done = "ended" in ran
                yield ran
                if is_done:
                    return
        finally:
            if not is_done:
                self._server.process = None
                _end(server)
        if not self._is_stopped:
            raise RuntimeError("the process that runs mutants has failed, see above")

    def _new_server(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", f"{__package__}.trial"]
        pipe = subprocess.PIPE
        server = subprocess.Popen(
            command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True, start_new_session=True
        )
        self._server.process = server
        self._running.append(server)
        return server

    def _is_over(self) -> bool:
        return self._is_stopped or time.monotonic() >= self.until

    def stop(self) -> None:
        """End what runs."""
        self._is_stopped = True
        for process in self._running:
            _end(process)


def _end(server: subprocess.Popen[str]) -> None:
    """With the fork that it may have."""
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGTERM)
    with server:  # waits for it, and closes its pipes
        pass
