"""What the tests of the client take for granted."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _ctrl_c_interrupts() -> Iterator[None]:
    """As in a shell's foreground; in its background, programs start with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
