"""A process that is as small as a server's; that of the tests may have half a gigabyte."""

import pytest

from disque_trio.cli.doctor import startup


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the doctor takes for the size of an empty server."""
    monkeypatch.setattr(startup, "rss_bytes", lambda: 60 << 20)
