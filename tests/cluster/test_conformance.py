"""Every reply recorded from the original, replayed against servers of ours."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import attrs
import pytest

from tests.cluster.processes import Fleet
from tests.conformance import CONFORMANCE, needs_conformance
from tests.conformance_departures import DEPARTURES

pytestmark = needs_conformance

AT_ONCE: Final = 4
"""Replays that run side by side: some of the transcripts spend seconds waiting."""
DIFFERENCE: Final = re.compile(
    r"^(\S+\.json)#(\d+) (differs|wording): .*\n  recorded (.*)\n  replied  (.*)\n", re.MULTILINE
)

Step = tuple[str, int]
"""A transcript's name and the number of a step in it."""


@attrs.frozen
class Replayed:
    """What the replays printed, and the steps that they say differ, with the lines that say so."""

    output: str
    differences: dict[Step, str]


def transcripts() -> list[Path]:
    return sorted((CONFORMANCE / "transcripts").glob("*.json"))


@pytest.fixture(scope="module")
def replayed(shared_fleet: Fleet) -> Replayed:
    paths = transcripts()
    servers = [shared_fleet.server() for _ in range(AT_ONCE)]
    replays = [
        subprocess.Popen(
            [
                sys.executable,
                str(CONFORMANCE / "replay.py"),
                f"127.0.0.1:{server.port}",
                *(str(path) for path in paths[i::AT_ONCE]),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for i, server in enumerate(servers)
    ]
    try:
        output = "".join(replay.communicate()[0] for replay in replays)
    finally:
        for replay in replays:
            replay.kill()
            replay.wait()
    found = {
        (m[1], int(m[2])): m[0]
        for m in DIFFERENCE.finditer(output)
        if m[3] == "differs" or not goes_on(ast.literal_eval(m[4]), ast.literal_eval(m[5]))
    }
    return Replayed(output, found)


def goes_on(recorded: list[str], replied: list[str]) -> bool:
    """Is it the recorded error, and more words behind it? They tell people what was wrong."""
    return recorded[0] == replied[0] == "error" and replied[1].startswith(recorded[1])


def test_words_behind_a_recorded_error_are_no_difference_and_others_are() -> None:
    recorded = ["error", "ERR syntax error"]

    assert goes_on(recorded, ["error", "ERR syntax error: FROM is missing"])
    assert not goes_on(recorded, ["error", "ERR FROM is missing"])
    assert not goes_on(recorded, ["simple", "ERR syntax error"])


def test_the_transcripts_are_all_there() -> None:
    names = [path.stem for path in transcripts()]

    assert len(names) >= 130
    assert sum(name.startswith("random-") for name in names) >= 100


def test_every_transcript_is_replayed_to_its_end(replayed: Replayed) -> None:
    counts = re.findall(r"^(\d+) passed, (\d+) failed", replayed.output, re.MULTILINE)

    assert len(counts) == AT_ONCE, replayed.output
    assert sum(int(number) for count in counts for number in count) >= 6000


def test_every_reply_is_the_recorded_one_but_for_the_departures(replayed: Replayed) -> None:
    intended = {(departure.transcript, n) for departure in DEPARTURES for n in departure.steps}
    unintended = [line for step, line in replayed.differences.items() if step not in intended]

    assert not unintended, "\n".join(unintended)


def test_every_departure_still_is_one(replayed: Replayed) -> None:
    listed = [(departure.transcript, n) for departure in DEPARTURES for n in departure.steps]

    assert len(set(listed)) == len(listed)
    assert not set(listed) - set(replayed.differences)
