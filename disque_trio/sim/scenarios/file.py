"""Reads scenario files, and reports every error with file and line.

A file may be based on another one beside it: tables are merged key by key; arrays of tables and
mixes replace those of the base.
"""

import tomllib
from pathlib import Path as FilePath
from typing import Any

import attrs

from disque_trio.sim.scenarios.ranges import Range
from disque_trio.sim.scenarios.scenario import Scenario, families
from disque_trio.sim.scenarios.schema import Problem, Spot, WrongValueError, advice, read_record
from disque_trio.sim.scenarios.toml_lines import Path, line_of, lines
from disque_trio.sim.scenarios.value_types import SECOND


class ScenarioError(Exception):
    """A scenario file is invalid; the text has every problem, each with file and line."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def load(path: str | FilePath) -> Scenario:
    """Return the scenario in a file. Raise `ScenarioError`, or OSError if there is no file."""
    sources = _sources(FilePath(path))
    document: dict[str, Any] = {}
    for source in reversed(sources):
        document = _merged(document, source.document)
    if "name" not in sources[0].document:
        document.pop("name", None)
    problems: list[Problem] = []
    try:
        scenario = read_record(Scenario, document, Spot((), problems))
    except WrongValueError:
        raise ScenarioError([_located(problem, sources) for problem in problems]) from None
    _check(scenario, problems)
    if problems:
        raise ScenarioError([_located(problem, sources) for problem in problems])
    return scenario


@attrs.frozen
class _Source:
    """One file of a scenario and its bases."""

    path: FilePath
    document: dict[str, Any]
    lines: dict[Path, int]

    @property
    def arrays(self) -> dict[str, None]:
        return {name: None for name, value in self.document.items() if isinstance(value, list)}


def _sources(path: FilePath) -> list[_Source]:
    """Return the file, its base, the base's base, and so on."""
    found: list[_Source] = []
    while True:
        source = _source(path)
        found.append(source)
        base = source.document.get("base")
        if not isinstance(base, str):
            return found
        path = path.with_name(f"{base}.toml")
        line = line_of(source.lines, ("base",))
        if any(path == each.path for each in found):
            raise ScenarioError([f"{source.path}:{line}: {base} is based on itself"])
        if not path.exists():
            raise ScenarioError([f"{source.path}:{line}: there is no {path} to be based on"])


def _source(path: FilePath) -> _Source:
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ScenarioError([f"{path}: not UTF-8 at byte {error.start}"]) from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError([_not_toml(path, text, str(error))]) from None
    return _Source(path, document, lines(text))


def _not_toml(path: FilePath, text: str, error: str) -> str:
    """Return the parser's error with its line in front, like all other problems."""
    reason, _, place = error.partition(" (at ")
    line = place.split(",")[0].removeprefix("line ") if place.startswith("line ") else ""
    return f"{path}:{line or text.count(chr(10)) + 1}: not TOML: {reason}"


def _merged(base: dict[str, Any], top: dict[str, Any]) -> dict[str, Any]:
    """Merge tables key by key; for everything else `top` takes precedence."""
    result = dict(base)
    for name, value in top.items():
        below = result.get(name)
        if isinstance(below, dict) and isinstance(value, dict) and name != "ack":
            result[name] = _merged(below, value)
        else:
            result[name] = value
    return result


def _located(problem: Problem, sources: list[_Source]) -> str:
    """Return the problem with the file and line of its key."""
    path = problem.path
    while True:
        for source in sources:
            if path in source.lines or (len(path) > 1 and path[0] in source.arrays):
                return f"{source.path}:{line_of(source.lines, path)}: {problem.text}"
        if not path:
            return f"{sources[0].path}:1: {problem.text}"
        path = path[:-1]


def _check(scenario: Scenario, problems: list[Problem]) -> None:
    """Check dependences between several tables."""
    top = Spot((), problems)
    known = families(scenario)
    for number, family in enumerate(scenario.swarm.families or ()):
        if family not in known:
            spot = top.inside("swarm").inside("families").inside(number)
            spot.wrong(f"nothing is of the family '{family}'{advice(family, known)}")
    for name, places in (
        ("producer", [each.at for each in scenario.producers]),
        ("consumer", [each.at for each in scenario.consumers]),
        ("fault", [each.nodes for each in scenario.faults if each.kind != "join"]),
    ):
        _check_places(places, int(scenario.cluster.nodes.low), top.inside(name))
    for number, consumer in enumerate(scenario.consumers):
        if consumer.queues is None and not scenario.producers:
            top.inside("consumer").inside(number).wrong("without producers, say which 'queues'")
    _check_times(scenario, top)


def _check_times(scenario: Scenario, top: Spot) -> None:
    """Report faults and producers that would start after the chaos in every seed."""
    for number, fault in enumerate(scenario.faults):
        key = "every" if fault.at is None else "at"
        _check_time(fault.at or fault.every, scenario, top.inside("fault").inside(number), key)
    for number, producer in enumerate(scenario.producers):
        _check_time(producer.start, scenario, top.inside("producer").inside(number), "start")


def _check_time(first: Range | None, scenario: Scenario, spot: Spot, key: str) -> None:
    chaos = scenario.end.chaos.high
    if first is not None and first.low >= chaos:
        spot.inside(key).wrong(
            f"{key} = {first.low / SECOND:g} s never comes: end.chaos is {chaos / SECOND:g} s, and "
            "faults and adds end then"
        )


def _check_places(places: list[tuple[int, ...] | str], most: int, spot: Spot) -> None:
    for number, place in enumerate(places):
        if isinstance(place, tuple) and max(place) > most:
            key = "nodes" if spot.name == "fault" else "at"
            spot.inside(number).inside(key).wrong(f"there is no node {max(place)} among {most}")
