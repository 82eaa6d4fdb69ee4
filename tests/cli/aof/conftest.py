from collections.abc import Callable
from pathlib import Path

import pytest

Make = Callable[[bytes], str]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a file, and tells its path."""

    def make(data: bytes) -> str:
        path = tmp_path / "disque.aof"
        path.write_bytes(data)
        return str(path)

    return make
