"""The colours in which the timeline writes can be read on a card, light and dark."""

import re
from importlib import resources
from typing import Final

import pytest

from disque_trio.sim.scenarios.fault_kinds import KINDS
from disque_trio.web import static_files

PACKAGE: Final = resources.files("disque_trio")
CSS: Final = (PACKAGE / "web" / "static" / "colours.css").read_text()
MARKS: Final = static_files.load()["timeline/marks.js"].body.decode()
ALWAYS: Final = {"ink", "muted", "accent", "good", "bad", "warn"}
LEAST: Final = 4.5


def colours(theme: str) -> dict[str, str]:
    light, _, dark = CSS.partition('[data-theme="dark"]')
    found = re.compile(r"--([\w-]+): (#[0-9a-f]{6});")
    named = dict(found.findall(light))
    return named | dict(found.findall(dark)) if theme == "dark" else named


def written() -> set[str]:
    """The names in the tables of faults, causes and messages."""
    tables = re.findall(r"const (?:CAUSE_COLOURS|FAMILIES) = \{(.*?)\};", MARKS, re.DOTALL)
    assert len(tables) == 2
    found = {name for table in tables for name in re.findall(r': "([\w-]+)"', table)}
    return found | {kind.colour for kind in KINDS} - {"other"} | {"gossip"}


def light(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def ratio(one: str, other: str) -> float:
    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_written_on_a_card_stands_out(theme: str) -> None:
    known = colours(theme)

    low = {name: ratio(known[name], known["card"]) for name in written() | ALWAYS}
    assert {name: found for name, found in low.items() if found < LEAST} == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_signs_stand_out_on_their_marks(theme: str) -> None:
    known = colours(theme)

    for name in ("accent", "good", "bad", "muted", "move"):
        assert ratio(known["on-mark"], known[name]) >= LEAST, name
    assert ratio(known["on-queued"], known["queued"]) >= LEAST
