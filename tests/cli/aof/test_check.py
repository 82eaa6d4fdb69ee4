import fcntl
import json

import pytest

from disque_trio.cli.aof import main
from disque_trio.cli.aof.outcomes import DAMAGED, NEWER, SOUND, TORN
from disque_trio.cli.frame import USAGE
from tests.cli.aof.conftest import Make
from tests.cli.aof.files import disque, framed

Capture = pytest.CaptureFixture[str]


def test_a_sound_file_is_counted(make: Make, capsys: Capture) -> None:
    assert main(["check", make(framed())]) == SOUND

    out = capsys.readouterr().out
    assert "disque.aof: our format (framed), " in out
    assert "7 records: 6 LOADJOB, 1 DELJOB" in out
    assert "2 jobs alive in 2 queues, 1 acknowledged, 1 expired" in out
    assert out.endswith("  sound\n")


def test_a_torn_tail_has_its_own_status_and_advice(make: Make, capsys: Capture) -> None:
    path = make(disque()[:-3])

    assert main(["check", path]) == TORN

    out = capsys.readouterr().out
    assert "the original's format" in out
    assert "torn tail: the 153 bytes from byte 846 on" in out
    assert f"'disque-trio aof repair {path}' cuts the tail off" in out


def test_damage_has_offset_and_advice(make: Make, capsys: Capture) -> None:
    path = make(framed()[:200] + b"x" + framed()[201:])

    assert main(["check", path, "--json"]) == DAMAGED

    facts = json.loads(capsys.readouterr().out)
    assert facts["damage"]["reason"] == "checksum wrong"
    assert facts["damage"]["offset"] == facts["sound"] == 167
    assert f"aof repair --skip-damaged {path}" in facts["damage"]["advice"]
    assert facts["loads"] == 1


def test_an_empty_file_is_sound(make: Make, capsys: Capture) -> None:
    assert main(["check", make(b"")]) == SOUND

    assert "disque.aof: empty, 0 bytes" in capsys.readouterr().out


def test_a_file_that_a_node_writes_to_may_end_within_a_record(make: Make, capsys: Capture) -> None:
    path = make(framed()[:-3])
    with open(path, "rb") as node:
        fcntl.flock(node, fcntl.LOCK_EX)

        assert main(["check", path]) == SOUND

    out = capsys.readouterr().out
    assert "of a record that is being written" in out
    assert "a running node uses it" in out


def test_what_is_no_file_is_refused_with_its_name(tmp_path: object, capsys: Capture) -> None:
    assert main(["check", f"{tmp_path}/none"]) == USAGE
    assert main(["check", str(tmp_path)]) == USAGE

    assert f"cannot read {tmp_path}/none: No such file" in capsys.readouterr().err


def test_a_file_of_another_kind_is_damaged_from_the_start(make: Make, capsys: Capture) -> None:
    assert main(["check", make(b"REDIS0011")]) == DAMAGED

    assert "not an append-only file at byte 0" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["mend"], ["check"], ["convert", "a", "b", "--to", "rdb"]])
def test_what_makes_no_sense_is_usage(words: list[str]) -> None:
    assert main(words) == USAGE


def test_the_help_has_every_exit_status(capsys: Capture) -> None:
    assert main(["--help"]) == 0

    told = capsys.readouterr().out
    assert all(f"\n  {status}    " in told for status in (SOUND, DAMAGED, USAGE, TORN, NEWER))
