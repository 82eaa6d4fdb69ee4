"""The ladder of the package: arrows run down only, and no two files import each other."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.trees import HOME, PACKAGE, modules, of_each, tree

LADDER: Final = (
    "statemachine",
    "wire",
    "jsonlines ports system extras programs terminal",
    "storage",
    "driver",
    "node",
    "net bus",
    "tracing",
    "client",
    "worker.engine",
    "sim.random_streams sim.scenarios",
    "sim.model sim.traces",
    "sim.bounds sim.workload",
    "sim.engines.events sim.engines.live_events sim.engines.links sim.engines.task_errors",
    "sim.engines.simulated_thread",
    "sim.engines.heap",
    "sim.engines.trio",
    "sim.engines.tcp sim.fault_controls sim.steering",
    "sim.checkers sim.histories sim.shrink",
    "sim.picture sim.reference explain",
    "sim.explore sim.guided",
    "sim.sandbox",
    "worker",
    "observe",
    "web",
    "serving",
    "pipeline testing",
    "manual",
    "cli",
    "contrib",
    "docs __main__",
)
"""From low to high: a file imports from its own rung and from those above it in this list only."""
ROOMS: Final = ("disque_trio", "tests", "benchmarks")


def name_of(path: Path) -> str:
    """The dotted name of a file."""
    name = ".".join(path.relative_to(HOME).with_suffix("").parts)
    return name.removesuffix(".__init__")


FILES: Final = {name_of(path): path for room in ROOMS for path in modules(HOME / room)}


def imported(path: Path) -> Iterator[str]:
    """Files of ours that a file imports, wherever in it, for type checking too."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in FILES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def circles(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """The files that can be reached from themselves: those without imports go first, again and
    again, and what cannot go is in a circle or leads into one."""
    left = {name: {other for other in others if other in graph} for name, others in graph.items()}
    while ground := [name for name, others in left.items() if not others & left.keys()]:
        for name in ground:
            del left[name]
    return sorted(left)


@cache
def all_imports() -> Mapping[str, set[str]]:
    """Which files each imports. Made by the first test that asks, as all files are parsed."""
    return {name: set(imported(path)) - {name} for name, path in FILES.items()}


def rung(name: str) -> int | None:
    """Which rung a file of the package stands on; None for none."""
    for height, names in enumerate(LADDER):
        for each in names.split():
            full = f"disque_trio.{each}"
            if name == full or name.startswith(f"{full}."):
                return height
    return None


def test_no_two_files_import_each_other() -> None:
    assert circles(all_imports()) == []


@pytest.mark.parametrize("length", [2, 3, 17])
def test_a_circle_is_found(length: int) -> None:
    knot = {f"disque_trio.{each}": [f"disque_trio.{(each + 1) % length}"] for each in range(length)}

    assert circles({**all_imports(), **knot}) == sorted(knot)


def test_an_import_for_type_checking_counts(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text("if TYPE_CHECKING:\n    from disque_trio import node\n", "utf-8")

    assert list(imported(file)) == ["disque_trio.node"]


@of_each([name for name in FILES if rung(name) is not None], str)
def test_arrows_run_down_only(name: str) -> None:
    height = rung(name)
    assert height is not None
    for other in all_imports()[name]:
        below = rung(other)
        assert below is None or below <= height, f"{name} imports {other}"


def test_every_file_of_the_package_is_on_a_rung() -> None:
    # A package's own __init__ only says what lives there.
    bare = {"disque_trio", "disque_trio.sim", "disque_trio.sim.engines"}
    found = {name for name in FILES if name.startswith("disque_trio") and rung(name) is None}
    assert found == bare


@pytest.mark.parametrize("name", ["disque_trio", "disque_trio.sim", "disque_trio.sim.engines"])
def test_an_init_that_is_on_no_rung_imports_nothing_of_the_package(name: str) -> None:
    assert not [each for each in all_imports()[name] if each.startswith("disque_trio")]


def test_each_folder_says_what_lives_there() -> None:
    for path in PACKAGE.rglob("__init__.py"):
        assert ast.get_docstring(tree(path)), path


def test_nothing_is_above_the_benchmarks_and_tests() -> None:
    for name, others in all_imports().items():
        if name.startswith("disque_trio"):
            assert not any(other.startswith(("tests", "benchmarks")) for other in others), name
