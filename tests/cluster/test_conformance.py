"""Every reply recorded from the original, replayed against servers of ours."""

import json
import queue
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import attrs
import pytest

from tests.cluster.processes import Fleet, Server
from tests.conformance import JOURNALS, NODES_FILES, TRANSCRIPTS, bus_messages
from tests.conformance.departures import DEPARTURES
from tests.conformance.replay import Outcome, is_as_recorded, replay

AT_ONCE: Final = 4
"""Replays that run side by side: some of the transcripts spend seconds waiting."""

Step = tuple[str, int]
"""A transcript's name and the number of a step in it."""


@attrs.frozen
class Replayed:
    """All transcripts, and a server to replay another."""

    outcomes: list[Outcome]
    server: Server

    @property
    def differing(self) -> dict[Step, str]:
        """The steps whose replies differ, each told."""
        return {
            (found.transcript, found.step): str(found)
            for outcome in self.outcomes
            for found in outcome.differences
        }


@pytest.fixture(scope="module")
def replayed(shared_fleet: Fleet) -> Replayed:
    servers = [shared_fleet.server() for _ in range(AT_ONCE)]
    idle: queue.SimpleQueue[Server] = queue.SimpleQueue()
    for server in servers:
        idle.put(server)

    def replay_one(path: Path) -> Outcome:
        server = idle.get()
        try:
            return replay(server.port, path)
        finally:
            idle.put(server)

    # Those that wait come first, so that none is left to wait alone.
    paths = sorted(TRANSCRIPTS, key=lambda path: path.name.startswith("random-"))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return Replayed(list(pool.map(replay_one, paths)), servers[0])


def test_the_recordings_are_all_there() -> None:
    assert len(TRANSCRIPTS) == 130
    assert sum(path.name.startswith("random-") for path in TRANSCRIPTS) == 100
    assert (len(JOURNALS), len(NODES_FILES)) == (3, 3)
    assert len(bus_messages()) == 309


def test_every_transcript_is_replayed_to_its_end(replayed: Replayed) -> None:
    recorded = {
        path.name: sum("cmd" in step or "receive" in step for step in json.loads(text)["steps"])
        for path in TRANSCRIPTS
        if (text := path.read_text())
    }

    assert {outcome.transcript: outcome.replies for outcome in replayed.outcomes} == recorded
    assert sum(recorded.values()) == 6181


def test_every_reply_is_the_recorded_one_but_for_the_departures(replayed: Replayed) -> None:
    intended = {(departure.transcript, n) for departure in DEPARTURES for n in departure.steps}
    unintended = [told for step, told in replayed.differing.items() if step not in intended]

    assert not unintended, "\n".join(unintended)


def test_every_departure_still_is_one(replayed: Replayed) -> None:
    listed = [(departure.transcript, n) for departure in DEPARTURES for n in departure.steps]

    assert len(set(listed)) == len(listed)
    assert not set(listed) - set(replayed.differing)


def test_a_reply_that_was_not_recorded_is_found(replayed: Replayed, tmp_path: Path) -> None:
    [path] = [path for path in TRANSCRIPTS if path.name == "fifo-order.json"]
    transcript = json.loads(path.read_text())
    wrong = {"cmd": ["QLEN", "nothing"], "reply": ["int", 1]}
    changed = tmp_path / path.name
    changed.write_text(json.dumps({**transcript, "steps": [*transcript["steps"], wrong]}))

    [found] = replay(replayed.server.port, changed).differences

    assert found.step == len(transcript["steps"])
    assert (found.recorded, found.replied) == (["int", 1], ["int", 0])


def test_words_behind_a_recorded_error_are_no_difference_and_others_are() -> None:
    recorded = ["error", "ERR syntax error"]

    assert is_as_recorded(recorded, ["error", "ERR syntax error: FROM is missing"])
    assert not is_as_recorded(recorded, ["error", "ERR FROM is missing"])
    assert not is_as_recorded(recorded, ["simple", "ERR syntax error"])
