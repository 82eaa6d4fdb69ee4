"""Names that a released version has stay (docs/compatibility.md)."""

import json
from pathlib import Path

import pytest

from tests.conformance.surface import FOLDER, broken, surface


@pytest.mark.parametrize("recorded", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_what_programs_use_of_a_release_is_still_there(recorded: Path) -> None:
    assert list(broken(json.loads(recorded.read_text()), surface())) == []


def test_what_breaks_a_program_is_named() -> None:
    old = {"python": {"f": {"positional": ["a", "b"], "keywords": ["b", "c"], "required": ["a"]}}}
    new = {"python": {"f": {"positional": ["a"], "keywords": ["b"], "required": ["a", "d"]}}}

    assert list(broken(old, old)) == []
    assert list(broken(old, new)) == [
        "python: f: positional: ['a', 'b'] became ['a']",
        "python: f: keywords: c is gone",
        "python: f: required: d is new",
    ]
    assert list(broken(old, {"python": {}})) == ["python: f is gone"]
