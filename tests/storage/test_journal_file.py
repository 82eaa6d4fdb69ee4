"""The journal as a real file."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from disque_trio.ports import JournalError
from disque_trio.storage.journal_file import DiskFile, JournalDisk


@pytest.fixture
def disk(tmp_path: Path) -> JournalDisk:
    return JournalDisk(str(tmp_path / "disque.aof"))


@pytest.fixture
def file(disk: JournalDisk) -> Iterator[DiskFile]:
    opened = disk.open()
    yield opened
    opened.close()


def content(disk: JournalDisk) -> bytes:
    return Path(disk.path).read_bytes()


def test_what_is_appended_follows_what_is_there(disk: JournalDisk, file: DiskFile) -> None:
    file.append(b"one")
    file.close()
    again = disk.open()
    again.append(b"two")
    again.sync()

    assert content(disk) == again.read(0, 100) == b"onetwo"
    assert again.size == 6
    again.close()


def test_a_file_that_is_closed_while_a_thread_hangs_in_it_touches_no_other(
    file: DiskFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def close(descriptor: int) -> None:
        with pytest.raises(OSError, match="Bad file descriptor"):
            file.append(b"late")
        really_close(descriptor)

    really_close = os.close
    monkeypatch.setattr("disque_trio.storage.journal_file.os.close", close)

    file.close()


def test_a_write_that_fails_half_way_leaves_no_half(disk: JournalDisk, file: DiskFile) -> None:
    file.append(b"one")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            file.append(b"three")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert content(disk) == b"one"
    assert file.size == 3
    file.append(b"two")
    assert content(disk) == b"onetwo"


def test_what_is_written_again_is_never_missing_meanwhile(
    disk: JournalDisk, file: DiskFile
) -> None:
    file.append(b"onetwo")
    file.rewind(3)
    assert content(disk) == b"onetwo"

    file.append(b"two")
    file.append(b"three")

    assert content(disk) == b"onetwothree"


def test_a_torn_end_is_cut(disk: JournalDisk, file: DiskFile) -> None:
    file.append(b"onetw")
    file.cut(3)
    file.append(b"three")

    assert content(disk) == b"onethree"


def test_no_other_process_may_have_it_open(disk: JournalDisk, file: DiskFile) -> None:
    with pytest.raises(JournalError, match="in use by another node"):
        disk.open()


def test_a_new_version_takes_its_place_and_is_locked_already(
    disk: JournalDisk, file: DiskFile
) -> None:
    file.append(b"old")
    new = disk.begin()
    new.append(b"new")
    assert content(disk) == b"old"

    disk.replace(new)
    disk.settle()
    file.close()

    assert content(disk) == b"new"
    with pytest.raises(JournalError, match="in use"):
        disk.open()
    new.close()


def test_a_new_version_that_is_not_wanted_leaves_nothing(disk: JournalDisk, file: DiskFile) -> None:
    disk.discard(disk.begin())

    assert os.listdir(os.path.dirname(disk.path)) == ["disque.aof"]


def test_what_a_crash_has_left_of_a_new_version_goes(disk: JournalDisk, file: DiskFile) -> None:
    Path(disk.path + ".new").write_bytes(b"half")

    new = disk.begin()

    assert new.size == 0
    disk.discard(new)


def test_a_node_that_begins_takes_no_room_for_a_rewrite_that_never_ended(
    disk: JournalDisk,
) -> None:
    Path(disk.path + ".new").write_bytes(b"half")

    disk.open().close()

    assert os.listdir(os.path.dirname(disk.path)) == ["disque.aof"]


def test_a_place_that_cannot_be_is_told(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"cannot open .*: No such file or directory"):
        JournalDisk(str(tmp_path / "none" / "disque.aof")).open()


async def test_work_may_be_done_in_a_thread(disk: JournalDisk, file: DiskFile) -> None:
    await disk.in_thread(file.append, b"x")

    assert content(disk) == b"x"
    assert 0 <= disk.salt() < 1 << 32


def test_errors_name_the_file_with_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert JournalDisk("disque.aof").name == str(tmp_path / "disque.aof")
