import fcntl
import io
import json
import os
from pathlib import Path

import pytest

from disque_trio.cli.aof import main
from disque_trio.cli.aof.outcomes import DAMAGED, SOUND
from disque_trio.cli.frame import USAGE
from disque_trio.statemachine.journaling import UNKNOWN, known_since
from disque_trio.wire.framed import HEADER_SIZE
from tests.cli.aof.conftest import Make
from tests.cli.aof.files import RECORDS, disque, framed
from tests.wire.journals import read

Capture = pytest.CaptureFixture[str]


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True


def records_in(path: str) -> int:
    found, torn = read(Path(path).read_bytes())
    assert not torn
    return len(found)


def what_writing_changes(path: str) -> tuple[object, ...]:
    """Not the access time: to read a file may change it."""
    found = os.stat(path)
    return found.st_ino, found.st_mode, found.st_mtime_ns, Path(path).read_bytes()


def test_a_sound_file_is_left_alone(make: Make, capsys: Capture) -> None:
    path = make(framed())
    before = what_writing_changes(path)

    assert main(["repair", path]) == SOUND

    assert what_writing_changes(path) == before
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]
    assert "nothing to repair" in capsys.readouterr().out


def test_of_a_symbolic_link_the_file_behind_it_is_repaired_and_kept(
    make: Make, tmp_path: Path
) -> None:
    path = make(framed()[:-1])
    link = tmp_path / "link.aof"
    link.symlink_to(path)

    assert main(["repair", str(link), "--yes"]) == SOUND

    assert link.is_symlink()
    assert records_in(path) == len(RECORDS) - 1
    assert Path(f"{path}.before-repair").read_bytes() == framed()[:-1]


@pytest.mark.parametrize("data", [framed(), disque()])
def test_a_torn_tail_is_cut_and_the_old_file_kept(data: bytes, make: Make) -> None:
    path = make(data[:-1])
    os.chmod(path, 0o640)

    assert main(["repair", path, "--yes"]) == SOUND

    assert records_in(path) == len(RECORDS) - 1
    assert Path(f"{path}.before-repair").read_bytes() == data[:-1]
    assert os.stat(path).st_mode & 0o777 == 0o640
    assert sorted(os.listdir(os.path.dirname(path))) == ["disque.aof", "disque.aof.before-repair"]


def test_a_second_repair_keeps_both_old_files(make: Make) -> None:
    for _ in range(2):
        main(["repair", make(framed()[:-1]), "--yes"])

    assert Path(f"{make(b'')}.before-repair.1").exists()


@pytest.mark.parametrize(("answer", "status"), [("y\n", SOUND), ("\n", USAGE), ("", USAGE)])
def test_without_yes_it_asks(
    answer: str, status: int, make: Make, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    path = make(framed()[:-1])
    monkeypatch.setattr("sys.stdin", Terminal(answer))

    assert main(["repair", path]) == status

    assert "Cut the file at byte" in capsys.readouterr().err
    assert os.path.exists(f"{path}.before-repair") == (status == SOUND)


def test_without_a_terminal_it_requires_yes(
    make: Make, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))

    assert main(["repair", make(framed()[:-1])]) == USAGE

    assert "give --yes to cut the file at byte" in capsys.readouterr().err


def test_damage_is_not_mended_unasked(make: Make, capsys: Capture) -> None:
    data = framed()[:200] + b"x" + framed()[201:]
    path = make(data)

    assert main(["repair", path, "--yes"]) == DAMAGED

    assert Path(path).read_bytes() == data
    assert f"repair --skip-damaged {path}" in capsys.readouterr().out


def test_damaged_records_are_left_out_and_counted(make: Make, capsys: Capture) -> None:
    path = make(framed()[:200] + b"x" + framed()[201:400] + b"x" + framed()[401:-1])

    assert main(["repair", path, "--yes", "--skip-damaged"]) == SOUND

    assert records_in(path) == len(RECORDS) - 3
    out = capsys.readouterr().out
    assert "in 3 places" in out
    assert "checksum wrong" in out


@pytest.mark.parametrize("way", ["--skip-damaged", "--cut-damaged"])
def test_queues_are_unknown_where_deliveries_may_be_missing(make: Make, way: str) -> None:
    whole = framed([known_since("a boot"), *RECORDS])
    path = make(whole[:400] + b"x" + whole[401:])

    assert main(["repair", path, "--yes", way]) == SOUND

    found, _ = read(Path(path).read_bytes())
    assert found[0] == known_since("a boot")
    assert found[-1] == UNKNOWN
    assert UNKNOWN not in found[:-1]


def test_everything_from_the_damage_on_is_cut(make: Make, capsys: Capture) -> None:
    path = make(disque() + b"noise" + disque())

    assert main(["repair", path, "--cut-damaged", "--yes", "--json"]) == SOUND

    assert Path(path).read_bytes() == disque()
    facts = json.loads(capsys.readouterr().out)
    assert facts["repaired"] is True
    assert facts["kept"] == f"{path}.before-repair"
    assert facts["lost"] == [
        {
            "start": len(disque()),
            "end": 2 * len(disque()) + 5,
            "reason": "neither LOADJOB nor DELJOB",
        }
    ]


def test_what_is_sound_behind_the_damage_is_told_before_it_is_cut(
    make: Make, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    path = make(framed()[:200] + b"x" + framed()[201:])
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))

    assert main(["repair", path, "--cut-damaged"]) == SOUND

    told = capsys.readouterr()
    behind = len(RECORDS) - records_in(path) - 1
    assert f"drop {behind} sound records after it, which --skip-damaged" in told.err
    assert f"--skip-damaged {path}.before-repair' restores them" in told.out
    assert main(["repair", f"{path}.before-repair", "--skip-damaged", "--yes"]) == SOUND
    assert records_in(f"{path}.before-repair") == len(RECORDS) - 1


@pytest.mark.parametrize("data", [b"REDIS0011" * 20, b"x" + framed()[1:], framed()[:5]])
def test_where_nothing_is_sound_an_empty_file_with_a_header_is_left(
    data: bytes, make: Make, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    path = make(data)
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))

    assert main(["repair", path, "--cut-damaged"]) == SOUND

    told = capsys.readouterr()
    assert "which leaves no job in it" in told.err
    assert "the repaired file has no records" in told.out
    assert records_in(path) == 0
    assert len(Path(path).read_bytes()) == HEADER_SIZE
    assert Path(f"{path}.before-repair").read_bytes() == data
    assert main(["check", path]) == SOUND


def test_a_header_that_is_damaged_is_mended_by_skipping_it(make: Make, capsys: Capture) -> None:
    path = make(framed()[:12] + bytes([framed()[12] ^ 1]) + framed()[13:])

    assert main(["repair", path]) == DAMAGED
    assert f"repair --skip-damaged {path}" in capsys.readouterr().out
    assert main(["repair", path, "--skip-damaged", "--yes"]) == SOUND

    assert records_in(path) == len(RECORDS)


def test_records_of_the_original_cannot_be_told_apart_behind_damage(
    make: Make, capsys: Capture
) -> None:
    assert main(["repair", make(disque() + b"noise"), "--skip-damaged", "-y"]) == USAGE

    assert "use --cut-damaged" in capsys.readouterr().err


def test_a_file_of_another_kind_stays_as_it_is(make: Make, capsys: Capture) -> None:
    path = make(b"REDIS0011" * 20)

    assert main(["repair", path, "--skip-damaged", "-y"]) == USAGE

    assert os.listdir(os.path.dirname(path)) == ["disque.aof"]
    assert "no record of the format framed follows" in capsys.readouterr().err


def test_a_file_that_a_running_node_holds_is_not_touched(make: Make, capsys: Capture) -> None:
    path = make(framed()[:-1])
    with open(path, "rb") as node:
        fcntl.flock(node, fcntl.LOCK_EX)

        assert main(["repair", path, "--yes"]) == USAGE

    assert "a running node uses it; stop the node first" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_beside_is_told(
    make: Make, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    path = make(framed()[:-1])
    os.mkdir(f"{path}.new")

    assert main(["repair", path, "--yes"]) == USAGE

    assert f"cannot write {path}.new: Is a directory" in capsys.readouterr().err
