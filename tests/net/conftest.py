"""How event loops wait for sockets, and the authorities that sign certificates."""

import pytest

from tests.certificates import Authority
from tests.net import kqueue, live


@pytest.fixture(params=["epoll", "kqueue", "tasks"])
def multiplexing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each poller in turn. Where the tests run there is no kqueue: `kqueue` emulates it."""
    name = str(request.param)
    if name == "kqueue":
        kqueue.install(monkeypatch)
    monkeypatch.setattr(live, "MULTIPLEXING", name)
    return name


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Signs for the nodes and clients of these tests."""
    return Authority(tmp_path_factory.mktemp("ca"), "ours")


@pytest.fixture(scope="module")
def foreign_authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Signs for nodes and clients of another cluster."""
    return Authority(tmp_path_factory.mktemp("ca"), "theirs")
