import json
import os
from pathlib import Path

import attrs
import pytest

from disque_trio.cli.aof import main
from disque_trio.cli.aof.outcomes import DAMAGED, SOUND
from disque_trio.cli.frame import USAGE
from disque_trio.statemachine.base import ACKED
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.records import DeleteJob, LoadJob, Record
from disque_trio.wire.framed import encode as framed_record
from disque_trio.wire.journal import Format, Writer
from tests.cli.aof.conftest import Make
from tests.cli.aof.files import RECORDS, disque, framed
from tests.rig import copy_of
from tests.wire.journals import read

Capture = pytest.CaptureFixture[str]


def test_a_file_goes_to_the_other_format_and_back(make: Make, tmp_path: Path) -> None:
    path, ours, theirs = make(disque()), f"{tmp_path}/ours", f"{tmp_path}/theirs"

    assert main(["convert", path, ours]) == SOUND
    assert main(["convert", ours, theirs, "--to", "disque"]) == SOUND

    assert read(Path(ours).read_bytes()) == (RECORDS, 0)
    assert read(Path(theirs).read_bytes()) == ([_for_original(each) for each in RECORDS], 0)


def _for_original(record: Record) -> Record:
    """The original crashes when it loads an acknowledged job: it is told that the job is gone."""
    if isinstance(record, LoadJob) and record.copy.state == ACKED:
        return DeleteJob(record.copy.id)
    return record


def test_two_new_files_have_different_salts(make: Make, tmp_path: Path) -> None:
    for name in "ab":
        main(["convert", make(framed()), f"{tmp_path}/{name}"])

    assert (tmp_path / "a").read_bytes()[12:16] != (tmp_path / "b").read_bytes()[12:16]


def test_compact_keeps_the_last_record_of_each_job_that_a_node_would_load(
    make: Make, tmp_path: Path, capsys: Capture
) -> None:
    out = f"{tmp_path}/out"

    assert main(["convert", make(framed()), out, "--compact", "--json"]) == SOUND

    assert read(Path(out).read_bytes()) == ([RECORDS[3], RECORDS[4], RECORDS[6]], 0)
    facts = json.loads(capsys.readouterr().out)
    assert (facts["written"], facts["new_size"]) == (3, os.path.getsize(out))


def test_a_torn_tail_is_left_out_and_told(make: Make, tmp_path: Path, capsys: Capture) -> None:
    out = f"{tmp_path}/out"

    assert main(["convert", make(framed()[:-1]), out]) == SOUND

    assert read(Path(out).read_bytes()) == (RECORDS[:-1], 0)
    assert "torn tail" in capsys.readouterr().out


def test_of_a_damaged_file_nothing_is_written(make: Make, tmp_path: Path) -> None:
    for more in ([], ["--json"]):
        assert main(["convert", make(framed() + b"x"), f"{tmp_path}/out", *more]) == DAMAGED

    assert os.listdir(tmp_path) == ["disque.aof"]


def test_a_file_that_is_there_is_not_written_over(make: Make, capsys: Capture) -> None:
    path = make(framed())

    assert main(["convert", path, path]) == USAGE

    assert "exists: remove it" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_told(
    make: Make, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["convert", make(framed()), f"{tmp_path}/none/out"]) == USAGE

    assert f"cannot write {tmp_path}/none/out.new: No such file" in capsys.readouterr().err


def test_a_full_disk_leaves_nothing_behind(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    assert main(["convert", make(framed()), f"{tmp_path}/out"]) == USAGE

    assert os.listdir(tmp_path) == ["disque.aof"]
    assert "No space left on device; nothing was changed" in capsys.readouterr().err


def test_the_original_s_format_has_no_place_for_extensions(
    make: Make, tmp_path: Path, capsys: Capture
) -> None:
    urgent = attrs.evolve(copy_of(), extensions=Extensions(priority=5))
    path, out = (
        make(Writer(Format.FRAMED).header + framed_record(0, LoadJob(urgent))),
        tmp_path / "out",
    )

    assert main(["convert", path, str(out), "--to", "disque"]) == USAGE

    assert not out.exists()
    assert "has extensions, such as PRIORITY" in capsys.readouterr().err
    assert main(["dump", path]) == SOUND
    assert " priority=5 " in capsys.readouterr().out
    assert main(["dump", path, "--json"]) == SOUND
    assert json.loads(capsys.readouterr().out)["priority"] == 5
