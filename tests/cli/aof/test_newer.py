"""Files of a newer version: shown as far as they can be read, and never changed."""

import json
from pathlib import Path

import pytest

from disque_trio.cli.aof import main
from disque_trio.cli.aof.outcomes import NEWER
from disque_trio.cli.frame import USAGE
from tests.cli.aof.conftest import Make
from tests.wire.newer import KNOWN, LATER, RECORDS, WRITER, layout

Capture = pytest.CaptureFixture[str]
SOUND_FILE = WRITER.header + KNOWN
FILES = {what: SOUND_FILE + record for what, record in RECORDS.items()}
FILES["cut short"] = FILES["a kind of record"][:-3]
FILES["another layout"] = layout(b"2")
FILES["another layout, cut short"] = layout(b"2")[:15]
files = pytest.mark.parametrize("data", FILES.values(), ids=FILES)
REPAIRS = [["--yes"], ["--yes", "--skip-damaged"], ["--yes", "--cut-damaged"]]


@files
def test_a_check_says_which_version_it_needs(data: bytes, make: Make, capsys: Capture) -> None:
    assert main(["check", make(data)]) == NEWER

    out = capsys.readouterr().out
    assert "newer than this version, not damaged" in out
    assert "repair" not in out
    assert "empty" not in out
    if "layout" not in out:
        assert f"Start disque-trio {LATER} or later with it" in out
        assert "1 job alive" in out or "1 expired" in out


@files
@pytest.mark.parametrize("how", REPAIRS, ids=" ".join)
def test_a_repair_leaves_it_alone(
    data: bytes, how: list[str], make: Make, capsys: Capture, tmp_path: Path
) -> None:
    path = make(data)

    assert main(["repair", path, *how]) == NEWER

    assert "not damaged" in capsys.readouterr().out
    assert Path(path).read_bytes() == data
    assert [each.name for each in tmp_path.iterdir()] == ["disque.aof"]


@pytest.mark.parametrize("how", REPAIRS[1:], ids=" ".join)
def test_a_repair_of_damage_deletes_nothing_newer_behind_it(
    how: list[str], make: Make, capsys: Capture
) -> None:
    data = bytearray(SOUND_FILE + KNOWN + RECORDS["a job state"])
    data[len(SOUND_FILE) - 30] ^= 1
    path = make(bytes(data))

    assert main(["repair", path, *how]) == USAGE

    assert "written by a later version of disque-trio" in capsys.readouterr().err
    assert Path(path).read_bytes() == data


@files
def test_it_is_neither_converted_nor_called_sound(
    data: bytes, make: Make, capsys: Capture, tmp_path: Path
) -> None:
    path, target = make(data), tmp_path / "out.aof"

    assert main(["convert", path, str(target)]) == NEWER
    assert not target.exists()
    assert main(["dump", path]) == NEWER
    assert "newer than this version" in capsys.readouterr().err


def test_json_tells_it_from_damage(make: Make, capsys: Capture) -> None:
    main(["check", make(FILES["a job state"]), "--json"])

    facts = json.loads(capsys.readouterr().out)
    assert facts["damage"] is None
    assert facts["newer"]["needs"] == LATER
    assert facts["newer"]["offset"] == facts["sound"] == len(SOUND_FILE)
