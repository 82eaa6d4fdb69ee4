"""The journal as a real file."""

import os
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from outcome import Outcome, Value

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


def test_a_rewrite_of_a_symbolic_link_replaces_what_it_points_to(tmp_path: Path) -> None:
    elsewhere = tmp_path / "volume"
    elsewhere.mkdir()
    link = tmp_path / "disque.aof"
    link.symlink_to(elsewhere / "real.aof")
    disk = JournalDisk(str(link))
    old, new = disk.open(), disk.begin()
    new.append(b"rewritten")

    disk.replace(new)

    assert link.is_symlink()
    assert os.listdir(elsewhere) == ["real.aof"]
    assert link.read_bytes() == b"rewritten"
    old.close()
    new.close()


def closed_within(call: str, disk: JournalDisk, file: DiskFile, patch: pytest.MonkeyPatch) -> int:
    """Let another task close the file, and others make files, when a thread is about to enter this
    system call. The number of the descriptor."""
    really = getattr(os, call)
    used: list[int] = []

    def late(descriptor: int, *args: object) -> object:
        patch.undo()
        used.append(descriptor)
        file.close()
        others = [os.open(f"{disk.path}.other{number}", os.O_RDWR | os.O_CREAT) for number in "12"]
        try:
            return really(descriptor, *args)
        finally:
            for other in others:
                os.close(other)

    patch.setattr(f"disque_trio.storage.journal_file.os.{call}", late)
    if call == "pwrite":
        file.append(b"late")
    else:
        assert file.loss() == ""
    return used[0]


def test_a_write_that_is_under_way_when_the_file_is_closed_reaches_no_other_file(
    disk: JournalDisk, file: DiskFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    descriptor = closed_within("pwrite", disk, file, monkeypatch)

    assert content(disk) == b"late"
    assert Path(f"{disk.path}.other1").read_bytes() == b""
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_look_that_is_under_way_when_the_file_is_closed_sees_no_other_file(
    disk: JournalDisk, file: DiskFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    descriptor = closed_within("fstat", disk, file, monkeypatch)

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_closed_file_is_used_no_more_and_closed_once(
    file: DiskFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.close()
    monkeypatch.setattr("disque_trio.storage.descriptor.os.close", pytest.fail)

    file.close()

    with pytest.raises(OSError, match="Bad file descriptor"):
        file.append(b"late")


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


def test_a_rewrite_that_was_given_up_puts_no_other_file_in_the_journal_s_place(
    disk: JournalDisk, file: DiskFile
) -> None:
    file.append(b"old")
    given_up = disk.begin()
    half = disk.begin()
    half.append(b"half")

    with pytest.raises(OSError, match="another file has replaced the new journal"):
        disk.replace(given_up)

    assert content(disk) == b"old"
    half.append(b" and whole")
    disk.replace(half)
    assert content(disk) == b"half and whole"
    given_up.close()
    half.close()


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


def test_work_may_be_done_in_a_thread(disk: JournalDisk, file: DiskFile) -> None:
    rung, outcomes = threading.Event(), list[Outcome[object]]()
    disk.thread.wake = rung.set
    disk.thread.beside(file.append, (b"x",), outcomes.append)
    assert rung.wait(60)
    assert outcomes == []

    disk.thread.collect()

    assert outcomes == [Value(None)]
    assert content(disk) == b"x"
    assert 0 <= disk.salt() < 1 << 32


def test_errors_name_the_file_with_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert JournalDisk("disque.aof").name == str(tmp_path / "disque.aof")
