"""What the client brings along: users of a queue install and start no server."""

import builtins
import re
import subprocess
import sys

import pytest

import disque_trio.client
from tests.trees import HOME

ALLOWED = {
    "disque_trio.client",
    "disque_trio.wire",
    "disque_trio.statemachine.base",
    "disque_trio.statemachine.extensions",
    "disque_trio.statemachine.commandoptions",
    "disque_trio.statemachine.joboptions",
    "disque_trio.terminal.escapes",
}
"""What the clients need of the package, with what is inside."""


def loaded(statement: str) -> set[str]:
    """The modules that a new process has after this."""
    code = f"{statement}\nimport sys; print(*sys.modules)"
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=HOME, check=True, capture_output=True, text=True
    )
    return set(told.stdout.split())


@pytest.mark.parametrize("name", ["Client", "BlockingClient"])
def test_a_client_is_imported_without_trio_and_without_the_server(name: str) -> None:
    modules = loaded(f"from disque_trio.client import {name}")

    assert f"disque_trio.client.{name.removesuffix('Client').lower() or 'client'}" in modules
    assert not modules & {"trio", "asyncio", "rich", "prompt_toolkit", "google_crc32c", "ssl"}
    ours = {each for each in modules if each.startswith("disque_trio.")}
    empty = {"disque_trio.statemachine", "disque_trio.system", "disque_trio.terminal"}
    assert {each for each in ours - empty if not each.startswith(tuple(ALLOWED))} == set()


def test_the_blocking_client_does_without_anyio() -> None:
    assert "anyio" not in loaded("from disque_trio.client import BlockingClient")


def test_the_package_itself_imports_neither_client() -> None:
    modules = loaded("import disque_trio.client")

    assert {each for each in modules if each.startswith("disque_trio.")} == {"disque_trio.client"}


def test_every_error_of_the_manual_can_be_imported_with_the_clients() -> None:
    page = (HOME / "docs/client.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+Error)`", page)) - {"DisqueError", *dir(builtins)}

    assert len(named) > 12
    for name in named:
        assert issubclass(getattr(disque_trio.client, name), disque_trio.client.DisqueError)
