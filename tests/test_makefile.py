"""Each target of the Makefile works with what it installs itself, not only where all is installed.

What a target would do in a clean clone is what `make --dry-run` prints. Its modules are imported in
a process that finds no packages but those of the extras that were installed before.
"""

import json
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from itertools import takewhile
from typing import Final

import attrs
import pytest
from packaging.requirements import Requirement

from benchmarks.__main__ import OTHERS
from tests.trees import HOME

MAKEFILE: Final = (HOME / "Makefile").read_text()
TARGETS: Final = [
    name
    for name in re.findall(r"^([a-z-]+):(?!=)", MAKEFILE, re.MULTILINE)
    if name not in ("help", "clean")
]
BIN: Final = "clean/bin/"
INSTALL: Final = re.compile(r"pip install .*'\.\[([a-z,]+)\]'")
RUN: Final = re.compile(rf"{BIN}(python -m )?([\w.-]+)((?: +\S+)*)")
ISOLATED: Final = """\
import importlib, json, sys
allowed = set(json.loads(sys.argv.pop(1)))
blocked = set(json.loads(sys.argv.pop(1))) - allowed
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Finder())
"""


PLUGINS: Final = ("-p", "no:cacheprovider", "-p", "pytest_timeout", "-p", "pytest_trio.plugin")
"""Those that are there by chance are not loaded."""


@attrs.frozen
class Step:
    """A program that a target runs."""

    target: str
    extras: frozenset[str]
    """What is installed by then."""
    is_module: bool
    program: str
    words: tuple[str, ...]


@cache
def steps() -> tuple[Step, ...]:
    """Of all targets, each in a clean clone."""
    return tuple(step for target in TARGETS for step in _steps(target))


def _steps(target: str) -> Iterator[Step]:
    command = ["make", "--dry-run", "--no-print-directory", target, f"VENV={BIN[:-5]}"]
    environment = {name: text for name, text in os.environ.items() if name != "MAKEFLAGS"}
    printed = subprocess.run(
        command, cwd=HOME, check=True, capture_output=True, text=True, env=environment
    ).stdout
    extras: set[str] = set()
    for line in printed.replace("\\\n", " ").splitlines():
        if found := INSTALL.search(line):
            extras |= set(found[1].split(","))
        elif ran := RUN.search(line):
            is_module, program, words = ran.groups()
            if program != "pip":
                known = frozenset(extras)
                yield Step(target, known, bool(is_module), program, tuple(words.split()))


@cache
def packages(extras: frozenset[str]) -> frozenset[str]:
    """The distributions that come with these extras, as far as they are here."""
    found: set[str] = set()
    left = deque([("disque-trio", extras)])
    done: set[tuple[str, frozenset[str]]] = set()
    while left:
        name, wanted = left.popleft()
        if (name, wanted) in done:
            continue
        done.add((name, wanted))
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        found.add(name)
        for need in map(Requirement, needs):
            if need.marker is None or any(
                need.marker.evaluate({"extra": each}) for each in (*wanted, "")
            ):
                left.append((plain(need.name), frozenset(need.extras)))
    return frozenset(found)


def plain(name: str) -> str:
    """The name of a distribution as indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def isolated(extras: frozenset[str], code: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """A program that finds only what these extras bring."""
    owners = {
        module: {plain(each) for each in names}
        for module, names in packages_distributions().items()
    }
    here = packages(extras) | {"pip"}
    allowed = [module for module, names in owners.items() if names & here]
    return subprocess.run(
        [sys.executable, "-c", ISOLATED + code, json.dumps(allowed), json.dumps([*owners]), *words],
        cwd=HOME,
        check=False,
        capture_output=True,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        text=True,
        timeout=300,
    )


def modules(step: Step) -> Iterator[str]:
    """What it imports as it begins."""
    yield f"{step.program}.__main__" if (HOME / step.program).is_dir() else step.program
    if step.program == "benchmarks" and step.words[0] in OTHERS:
        yield f"benchmarks.{OTHERS[step.words[0]][0]}"


def test_all_targets_run_something() -> None:
    running = {step.target for step in steps()}

    assert set(TARGETS) - running == {"wheel"}, "which runs pip"
    assert {step.program for step in steps()} >= {"benchmarks", "pytest", "ruff", "mypy", "mkdocs"}


def test_no_target_is_taken_for_a_file() -> None:
    [phony] = re.findall(r"^\.PHONY: (.*)", MAKEFILE, re.MULTILINE)

    assert set(TARGETS) <= set(phony.split())


def _sets() -> list[frozenset[str]]:
    return sorted({step.extras for step in steps() if step.extras}, key=sorted)


@pytest.mark.sample(3)
@pytest.mark.parametrize("extras", _sets(), ids=lambda extras: "+".join(sorted(extras)))
def test_what_a_target_imports_is_installed_by_then(extras: frozenset[str]) -> None:
    here = [step for step in steps() if step.is_module and step.extras == extras]
    needed = {module for step in here for module in modules(step)}
    # Libraries are there if the list of their extra has them, whatever this environment lacks.
    own = sorted(each for each in needed if (HOME / each.partition(".")[0]).is_dir())
    code = "for each in sys.argv[1:]: importlib.import_module(each)\n"

    ran = isolated(extras, code, *own)

    assert ran.returncode == 0, f"{[step.target for step in here]}: {ran.stderr}"


def test_programs_are_installed_by_then() -> None:
    for step in steps():
        if step.is_module or step.program in ("python", "disque-trio"):
            continue
        try:
            distribution(step.program)
        except PackageNotFoundError:
            continue
        assert step.program in packages(step.extras), step


@pytest.mark.slow
def test_tests_that_need_no_spark_are_collected_without_it() -> None:
    paths = {
        word
        for step in steps()
        if step.program == "pytest" and "spark" not in step.extras
        for word in takewhile(lambda word: not word.startswith("--ignore"), step.words)
        if word.startswith("tests/")
    }
    code = "import pytest\nsys.exit(pytest.main(sys.argv[1:]))\n"

    ran = isolated(
        frozenset({"dev", "compiled"}), code, "--collect-only", "-q", *PLUGINS, *sorted(paths)
    )

    assert paths
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr


def test_a_module_that_no_extra_brings_is_not_found() -> None:
    assert "deltalake" in isolated(frozenset({"dev"}), "import deltalake").stderr
    assert "pytest" in isolated(frozenset({"server"}), "import pytest").stderr
    assert isolated(frozenset({"dev"}), "import pytest, trio, attrs").returncode == 0
