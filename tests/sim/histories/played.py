"""Simulated runs that are judged by their histories alone."""

from functools import partial
from pathlib import Path
from typing import Any, Final

from disque_trio.cli.sim.execution import engine_for, execute
from disque_trio.sim.histories.judge import Verdict, judge
from disque_trio.sim.histories.of_runs import RunHistory
from disque_trio.sim.histories.reading import Reader
from disque_trio.sim.histories.records import Limits
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Plan

HERE: Final = Path(__file__).parent


def played(name: str, seed: int) -> tuple[bool, Verdict]:
    """Is a run of `NAME.toml` right by its rows, and the verdict on its history?"""
    return judged(expand(load(str(HERE / f"{name}.toml")), seed))


def judged(plan: Plan) -> tuple[bool, Verdict]:
    """The same of a plan."""
    lines: list[bytes] = []
    history = RunHistory(plan, lines.append)
    engine: Any = engine_for(plan, "heap")
    done = execute(plan, watchers=[history.see], run=partial(engine, prepare=history.prepare))
    history.close()
    reader = Reader()
    reader.feed(lines, plan.scenario)
    return done.result.is_ok, judge(reader.history(Limits()))
