"""Writes the page of all keys and words of scenario files (docs/scenario-keys.md, `make docs`)."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from disque_trio.sim.checkers.properties import APP_PROPERTIES, PROPERTIES
from disque_trio.sim.scenarios import apps, fault_kinds, vocabulary
from disque_trio.sim.scenarios.marks import MARKS
from disque_trio.sim.scenarios.scenario import Scenario
from disque_trio.sim.scenarios.schema import Key, keys
from disque_trio.statemachine.knobs import KNOBS

_TITLES: Final = {
    "producer": "[[producer]]",
    "consumer": "[[consumer]]",
    "fault": "[[fault]]",
    "apps.fault": "[[apps.fault]]",
}

Line = tuple[str, ...]


def page() -> str:
    """Return the page, as Markdown."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield "# Scenario files: every key"
    yield ""
    yield "Written by `make docs`. [simulation.md](simulation.md) says how to use them."
    yield from _tables(Scenario, "The file", "")
    for title, is_of_links in (("Faults of links", True), ("Faults of nodes", False)):
        kinds = [kind for kind in fault_kinds.IN_SCENARIOS if kind.is_of_links == is_of_links]
        yield from _words(title, "kind", {kind.name: kind.meaning for kind in kinds})
    yield from _words("Shapes", "shape", vocabulary.SHAPES)
    yield from _words("Ways to end a job", "way", vocabulary.WAYS)
    yield from _words("What handlers of apps do", "action", apps.HANDLER_ACTIONS)
    yield from _words("Faults of processes of apps", "kind", apps.APP_FAULTS)
    yield from _table(
        "Constants of nodes, for `cluster.knobs`",
        ("constant", "default", "smallest", "meaning"),
        [
            (f"`{knob.name}`", f"{knob.default}", f"{knob.least}", f"{knob.unit} {knob.meaning}")
            for knob in KNOBS
        ],
    )
    yield from _words("Engines", "engine", vocabulary.ENGINES)
    yield from _words("Marks, for `expect.sometimes`", "mark", MARKS)
    yield from _words("Properties that are judged", "property", {**PROPERTIES, **APP_PROPERTIES})
    yield from _list("Families that every scenario has", vocabulary.BUILT_IN_FAMILIES)
    yield from _list("Events, for `when`", vocabulary.EVENTS)


def _tables(record: type, title: str, path: str) -> Iterator[str]:
    """Yield the record's own keys, then those of its tables."""
    found = keys(record)
    plain = [each for each in found if each.kind.record is None]
    if plain:
        yield from _table(title, ("key", "value", "default", "meaning"), map(_row, plain))
    for each in found:
        if each.kind.record is not None:
            name = f"{path}.{each.name}" if path else each.name
            title = _TITLES.get(name, f"[{name}]")
            yield from _tables(each.kind.record, f"`{title}`: {each.about}", name)


def _row(each: Key) -> Line:
    default = each.shown_default
    return f"`{each.name}`", each.kind.description, f"`{default}`" if default else "", each.about


def _words(title: str, column: str, meanings: Mapping[str, str]) -> Iterator[str]:
    rows = ((f"`{word}`", meaning) for word, meaning in meanings.items())
    return _table(title, (column, "meaning"), rows)


def _list(title: str, names: Iterable[str]) -> Iterator[str]:
    yield from ("", f"## {title}", "")
    yield ", ".join(f"`{name}`" for name in names) + "."


def _table(title: str, head: Line, rows: Iterable[Line]) -> Iterator[str]:
    yield from ("", f"## {title}", "")
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


if __name__ == "__main__":
    sys.stdout.write(page())
