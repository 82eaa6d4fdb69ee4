"""Who signs certificates."""

import pytest

from tests.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Signs for the nodes and clients of these tests."""
    return Authority(tmp_path_factory.mktemp("ca"), "ours")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Signs for others."""
    return Authority(tmp_path_factory.mktemp("ca"), "theirs")
