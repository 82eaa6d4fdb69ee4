import json

import attrs
import pytest

from disque_trio.cli.aof import main
from disque_trio.cli.aof.outcomes import DAMAGED, SOUND, TORN
from disque_trio.statemachine.journaling import STARTED, STOPPED, UNKNOWN, known_since, left
from disque_trio.statemachine.records import LoadJob
from tests.cli.aof.conftest import Make
from tests.cli.aof.files import delete, disque, framed, load
from tests.wire.test_jobs import COPY

Capture = pytest.CaptureFixture[str]


def test_each_record_has_a_line(make: Make, capsys: Capture) -> None:
    assert main(["dump", make(disque())]) == SOUND

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    assert lines[0].startswith('LOADJOB D-8f3c6c1a-000000000000000000000001-05a1 "q1" queued ')
    assert lines[0].endswith(" flags=3 holders=8f3c6c1a bytes=5")
    assert lines[2] == "DELJOB D-8f3c6c1a-000000000000000000000001-05a1"
    assert "created=2026-11-20T17:53:17Z expires=2" in lines[5]


def test_bodies_are_quoted(make: Make, capsys: Capture) -> None:
    main(["dump", "--bodies", make(framed())])

    assert capsys.readouterr().out.splitlines()[4].endswith('body="\\xff\\n"')


def test_json_has_every_field(make: Make, capsys: Capture) -> None:
    assert main(["dump", "--json", "--bodies", make(framed())]) == SOUND

    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0] | {"expires": "", "etime": 0} == {
        "record": "LOADJOB",
        "id": "D-8f3c6c1a-000000000000000000000001-05a1",
        "queue": "q1",
        "state": "queued",
        "created": "2026-11-20T17:53:17Z",
        "expires": "",
        "ctime": 1795197197366000000,
        "etime": 0,
        "retry": 60,
        "delay": 0,
        "replicate": 1,
        "nacks": 0,
        "additional-deliveries": 0,
        "flags": 3,
        "gc-attempt": 0,
        "holders": ["8f3c6c1a3609ae2e86966cf2909ac6166b1c069a"],
        "bytes": 5,
        "body": "body1",
    }
    assert rows[2] == {"record": "DELJOB", "id": "D-8f3c6c1a-000000000000000000000001-05a1"}
    assert rows[4]["body"] == "ÿ\n"


def test_what_is_noted_of_queues_is_told_from_deletions(make: Make, capsys: Capture) -> None:
    job = load(1)
    notes = [known_since("boot"), UNKNOWN, STOPPED, STARTED]
    path = make(framed([job, left(job.copy.id), *notes, delete(1)]))

    assert main(["dump", path]) == SOUND
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "DEQUEUED D-8f3c6c1a-000000000000000000000001-05a1"
    said = ["NOTE queues-known", "NOTE queues-unknown", "NOTE stopped", "NOTE started"]
    assert lines[2:6] == said
    assert lines[6] == "DELJOB D-8f3c6c1a-000000000000000000000001-05a1"

    assert main(["dump", "--json", path]) == SOUND
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[1] == {"record": "DEQUEUED", "id": "D-8f3c6c1a-000000000000000000000001-05a1"}
    assert rows[4] == {"record": "NOTE", "note": "stopped"}

    assert main(["check", path]) == SOUND
    assert "7 records: 1 LOADJOB, 1 DEQUEUED, 4 NOTE, 1 DELJOB" in capsys.readouterr().out


def test_records_before_damage_are_shown_and_then_the_damage(make: Make, capsys: Capture) -> None:
    assert main(["dump", make(framed() + b"x")]) == DAMAGED

    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 7
    assert "proper beginning at byte" in captured.err


def test_a_torn_tail_is_told_behind_the_records(make: Make, capsys: Capture) -> None:
    assert main(["dump", make(framed()[:-1])]) == TORN

    assert "torn tail" in capsys.readouterr().err


def test_the_last_creation_stamp_is_a_time(make: Make, capsys: Capture) -> None:
    assert main(["dump", make(framed([LoadJob(attrs.evolve(COPY, ctime=(1 << 64) - 1))]))]) == SOUND

    assert "created=2554-07-21T23:34:33Z" in capsys.readouterr().out


def test_the_end_of_a_delay_is_a_time(make: Make, capsys: Capture) -> None:
    path = make(framed([LoadJob(attrs.evolve(COPY, delay=10, due=1_795_197_207_366))]))

    assert main(["dump", path]) == SOUND
    assert " due=2026-11-20T17:53:27Z " in capsys.readouterr().out
    assert main(["dump", "--json", path]) == SOUND
    assert json.loads(capsys.readouterr().out)["due"] == 1_795_197_207_366


def test_holders_that_have_not_confirmed_their_copies_are_named(
    make: Make, capsys: Capture
) -> None:
    holders = (b"a" * 40, b"b" * 40, b"a" * 40, b"c" * 40)
    path = make(framed([LoadJob(attrs.evolve(COPY, holders=holders))]))

    assert main(["dump", path]) == SOUND
    assert " holders=aaaaaaaa,bbbbbbbb,cccccccc unconfirmed=cccccccc " in capsys.readouterr().out
    assert main(["dump", "--json", path]) == SOUND
    row = json.loads(capsys.readouterr().out)
    assert row["holders"] == ["a" * 40, "b" * 40, "c" * 40]
    assert row["unconfirmed"] == ["c" * 40]
