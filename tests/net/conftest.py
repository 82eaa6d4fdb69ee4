"""How hubs wait for sockets, and who signs certificates."""

import pytest

from tests.certificates import Authority
from tests.net import kqueue, live


@pytest.fixture(params=["epoll", "kqueue", "tasks"])
def multiplexing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way in turn. There is a kqueue where these tests run only as `kqueue` makes one."""
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
    """Signs for others."""
    return Authority(tmp_path_factory.mktemp("ca"), "theirs")
