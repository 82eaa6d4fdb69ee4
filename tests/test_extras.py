"""What is installed for clients and workers alone, and what the rest says then."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from disque_trio.extras import PACKAGES
from disque_trio.programs import COMMANDS, EXTRAS
from tests.trees import HOME, PACKAGE, modules, tree

PROJECT: Final[dict[str, Any]] = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]


def run(code: str, *, without: str = "server") -> subprocess.CompletedProcess[str]:
    """A program in a process in which the packages of an extra are missing."""
    hidden = f"import sys; sys.modules.update(dict.fromkeys({list(PACKAGES[without])!r}))\n"
    return subprocess.run(
        [sys.executable, "-c", hidden + code], cwd=HOME, check=False, capture_output=True, text=True
    )


def command(words: str, *, without: str = "server") -> subprocess.CompletedProcess[str]:
    """A command there."""
    code = f"from disque_trio.__main__ import main; sys.exit(main({words.split()!r}))"
    return run(code, without=without)


def names(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w-]+", each)[0] for each in requirements}  # type: ignore[index]


def test_the_extras_bring_what_the_errors_say() -> None:
    extras = PROJECT["optional-dependencies"]

    assert names(extras["cli"]) == set(PACKAGES["cli"].values())
    own = set(PACKAGES["server"].values()) - names(extras["cli"])
    assert names(extras["server"]) == {"disque-trio", *own}
    assert not names(PROJECT["dependencies"]) & set(PACKAGES["server"].values())
    for extra in ("dev", "example", "spark", "testing", "trace"):
        assert "disque-trio[server]" in extras[extra]


def imported() -> Iterator[tuple[Path, str]]:
    """The first part of the name of each module that a file imports as it is imported itself."""
    for path in modules(PACKAGE):
        for node in tree(path).body:
            if isinstance(node, ast.Import):
                yield from ((path, each.name.partition(".")[0]) for each in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield path, node.module.partition(".")[0]


def test_clients_and_workers_import_nothing_of_the_server() -> None:
    light = ("client", "worker", "contrib", "observe")
    for path, module in imported():
        if path.relative_to(PACKAGE).parts[0] in light:
            assert module not in PACKAGES["server"], path


def test_every_public_name_of_clients_and_workers_is_there_without_the_server() -> None:
    code = (
        "import disque_trio.client, disque_trio.worker\n"
        "for each in (disque_trio.client, disque_trio.worker):\n"
        "    [getattr(each, name) for name in each.__all__]\n"
        "from disque_trio.worker import driver, handler\n"
        "from disque_trio.worker.operating import admin\n"
        "import disque_trio.testing.plugin\n"
    )

    assert run(code).stderr == ""


@pytest.mark.parametrize("name", sorted(EXTRAS))
def test_a_command_that_needs_an_extra_names_it(name: str) -> None:
    ran = command(f"{name} --help", without=EXTRAS[name])

    assert ran.returncode == 1
    package = next(iter(PACKAGES[EXTRAS[name]].values()))
    assert ran.stderr == (
        f"disque-trio {name} needs {package}: pip install 'disque-trio[{EXTRAS[name]}]'\n"
    )


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - EXTRAS.keys()))
def test_other_commands_do_without(name: str) -> None:
    ran = command(f"{name} --help")

    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_part_of_a_command_that_needs_an_extra_names_it() -> None:
    ran = command("cli help ADDJOB", without="cli")

    assert ran.returncode == 1
    assert ran.stderr == "disque-trio cli needs rich: pip install 'disque-trio[cli]'\n"


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("disque_trio.testing.plans", "disque_trio.testing"),
        ("disque_trio.testing.plugin._kit('simulated')", "this fixture"),
    ],
)
def test_the_testing_kits_name_their_extra(code: str, what: str) -> None:
    ran = run(f"import disque_trio.testing.plugin\n{code}")

    assert f"{what} needs google-crc32c: pip install 'disque-trio[testing]'" in ran.stderr


def test_another_module_that_is_missing_is_no_extra() -> None:
    code = "from disque_trio.extras import needed\nwith needed('x', 'cli'): import nothing_at_all"

    assert "ModuleNotFoundError: No module named 'nothing_at_all'" in run(code).stderr
