import os
from pathlib import Path

import pytest

from disque_trio.storage.nodes_conf import NodesConf, NodesConfError

LINE = b"a" * 40 + b" 127.0.0.1:7711 myself 0 0 connected\n"
OTHER = b"b" * 40 + b" 127.0.0.1:7712 fail?,leaving 5 0 disconnected\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "nodes.conf"


def opened(path: Path) -> NodesConf:
    return NodesConf(str(path))


def test_a_new_node_has_none(path: Path) -> None:
    store = opened(path)
    assert store.load() is None
    store.close()


def test_an_empty_file_is_a_new_node_s(path: Path) -> None:
    path.write_bytes(b"\n\n")
    store = opened(path)
    assert store.load() is None
    store.close()


def test_what_was_saved_is_loaded(path: Path) -> None:
    store = opened(path)
    store.save(LINE + OTHER)
    store.close()

    store = opened(path)
    loaded = store.load()
    store.close()

    assert loaded is not None
    myself, others = loaded
    assert (myself.id, myself.port) == (b"a" * 40, 7711)
    assert [(peer.id, peer.ping_sent > 0) for peer in others] == [(b"b" * 40, True)]
    assert os.listdir(path.parent) == ["nodes.conf"]


def test_a_symbolic_link_stays_one(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "volume"
    elsewhere.mkdir()
    path.symlink_to(elsewhere / "nodes.conf")
    store = opened(path)
    store.save(LINE)
    store.close()

    assert path.is_symlink()
    assert os.listdir(elsewhere) == ["nodes.conf"]
    assert path.read_bytes() == LINE


def test_the_lock_lasts_through_saves(path: Path) -> None:
    store = opened(path)
    with pytest.raises(NodesConfError, match="in use by another node"):
        opened(path)
    store.save(LINE)
    with pytest.raises(NodesConfError, match="in use by another node"):
        opened(path)
    store.save(LINE + OTHER)
    with pytest.raises(NodesConfError, match="in use by another node"):
        opened(path)

    store.close()

    opened(path).close()


def test_a_store_that_is_closed_during_a_save_leaves_no_lock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(path)
    really_rename = os.rename

    def rename(source: str, target: str) -> None:
        store.close()
        really_rename(source, target)

    monkeypatch.setattr("disque_trio.storage.nodes_conf.os.rename", rename)
    store.save(LINE)

    assert path.read_bytes() == LINE
    opened(path).close()


def test_a_failed_save_leaves_the_file_and_the_lock(path: Path) -> None:
    store = opened(path)
    store.save(LINE)
    os.mkdir(f"{path}.new")

    with pytest.raises(OSError, match="Is a directory"):
        store.save(OTHER)

    assert path.read_bytes() == LINE
    with pytest.raises(NodesConfError, match="in use by another node"):
        opened(path)
    store.close()


def test_it_stays_where_it_was_when_the_process_moves(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    store = NodesConf("nodes.conf")
    monkeypatch.chdir("/")

    store.save(LINE)

    assert path.read_bytes() == LINE
    store.close()


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NodesConfError, match=r"missing/nodes\.conf: No such file"):
        opened(tmp_path / "missing" / "nodes.conf")


def test_what_is_no_regular_file_is_refused(path: Path) -> None:
    os.mkfifo(path)

    with pytest.raises(NodesConfError, match=r"nodes\.conf is not a regular file"):
        opened(path)


def test_nonsense_is_refused_with_its_line(path: Path) -> None:
    path.write_bytes(LINE + b"one two\n")
    store = opened(path)

    with pytest.raises(NodesConfError, match="line 2: 6 words are expected, not 2"):
        store.load()
    store.close()
