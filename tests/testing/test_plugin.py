"""The plugin of pytest, as users have it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.client.test_imports import loaded
from tests.trees import HOME

NAME = "disque_trio.testing.plugin"


def test_pytest_finds_the_plugin_by_an_entry_point() -> None:
    project = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))["project"]

    # It has the name of the module, so `-p` and the entry point do not load it twice.
    assert project["entry-points"]["pytest11"] == {NAME: NAME}


def test_it_imports_nothing_until_a_fixture_is_asked_for() -> None:
    modules = loaded(f"import {NAME}")

    ours = {each for each in modules if each.startswith("disque_trio.")}
    assert ours == {"disque_trio.testing", NAME}
    assert not modules & {"trio", "anyio", "hypothesis", "attrs"}


def test_its_fixtures_are_listed_with_their_texts(tmp_path: Path) -> None:
    words = (sys.executable, "-m", "pytest", "-p", NAME, "-p", "no:cacheprovider", "--fixtures")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

    for fixture in ("disque_inline", "disque_nodes", "disque_server", "disque_sim"):
        assert re.search(rf"^{fixture} (\[module scope\] )?-- ", done.stdout, re.MULTILINE)


FAILS = """
import pytest
from disque_trio.worker import App

app = App()

def test_it(disque_sim):
    async def story(cluster):
        assert cluster.plan.seed != 4

    disque_sim.run(story, app)
"""


@pytest.mark.slow
def test_a_story_that_fails_is_repeated_by_the_command_that_its_error_names(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FAILS)

    def tests(*more: str) -> str:
        words = (sys.executable, "-m", "pytest", "-p", NAME, "-p", "no:cacheprovider", *more)
        return subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, check=False
        ).stdout

    [again] = re.findall("again: pytest (.*)", tests())[:1]
    assert again == "test_it.py::test_it --disque-seed 4"
    assert "1 failed" in tests(*again.split())
    assert "1 passed" in tests("--disque-seed", "5")
