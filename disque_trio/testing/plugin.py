"""The pytest plugin: fixtures for tests of apps (docs/worker-testing.md).

pytest loads it in every environment where this package is installed. It does nothing until a test
asks for a fixture, so it imports nothing of this package before.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from disque_trio.testing.inline.kit import Inline


@pytest.fixture
def disque_inline() -> "Iterator[Inline]":
    """Apps add their jobs to a node in memory, and the test says when they run."""
    with import_module("disque_trio.testing.inline.kit").opened() as inline:
        yield inline
