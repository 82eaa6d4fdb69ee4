"""Every reply recorded from the original, replayed against servers of ours."""

import json
import queue
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import pytest

from tests.cluster.processes import Fleet, Server
from tests.conformance import JOURNALS, NODES_FILES, TRANSCRIPTS, bus_messages
from tests.conformance.departures import DEPARTURES
from tests.conformance.replay import Difference, Outcome, is_as_recorded, replay

AT_ONCE: Final = 4
"""Replays that run side by side: some of the transcripts spend seconds waiting."""
HELD_UP_S: Final = 0.25
"""The shortest times that replies depend on are a second. Replays on an idle machine are held up
for less than 0.05 s."""
ATTEMPTS: Final = 20
[FIFO] = [path for path in TRANSCRIPTS if path.name == "fifo-order.json"]

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
        outcomes = list(pool.map(replay_one, paths))
    return Replayed(list(map(partial(in_calm, servers[0]), paths, outcomes)), servers[0])


def in_calm(server: Server, path: Path, outcome: Outcome) -> Outcome:
    """Replay it again, alone, while replies differ and the machine may be why: a job's delay has
    passed between two steps that were recorded within milliseconds."""
    for _ in range(ATTEMPTS):
        if not outcome.differences or outcome.held_up_s < HELD_UP_S:
            break
        outcome = replay(server.port, path)
    return outcome


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
    changed = fifo_and(tmp_path, {"cmd": ["QLEN", "nothing"], "reply": ["int", 1]})

    [found] = replay(replayed.server.port, changed).differences

    assert found.step == len(json.loads(FIFO.read_text())["steps"])
    assert (found.recorded, found.replied) == (["int", 1], ["int", 0])


def test_a_difference_counts_unless_the_machine_held_the_replay_up(
    replayed: Replayed, tmp_path: Path
) -> None:
    again = partial(in_calm, replayed.server)
    changed = fifo_and(tmp_path, {"cmd": ["QLEN", "nothing"], "reply": ["int", 1]})
    difference = Difference(FIFO.name, 0, ["QLEN"], ["int", 0], ["int", 1])
    calm = Outcome(FIFO.name, differences=[difference])
    held_up = Outcome(FIFO.name, held_up_s=HELD_UP_S, differences=[difference])

    assert again(FIFO, calm) is calm
    assert not again(FIFO, held_up).differences
    assert again(changed, held_up).differences


def test_steps_that_mean_to_wait_are_not_held_up(replayed: Replayed, tmp_path: Path) -> None:
    waiting = tmp_path / "waiting.json"
    get = {"cmd": ["getjob", "timeout", "200", "FROM", "nothing"], "reply": ["nullarray"]}
    quick = {"cmd": ["QLEN", "nothing"], "reply": ["int", 0]}
    waiting.write_text(json.dumps({"steps": [{"sleep": 0.3}, quick, get, quick]}))

    outcome = replay(replayed.server.port, waiting)

    assert outcome.differences == []
    assert outcome.seconds - outcome.held_up_s == pytest.approx(0.5)


def fifo_and(folder: Path, step: dict[str, object]) -> Path:
    """The transcript of that name, and a step more."""
    transcript = json.loads(FIFO.read_text())
    changed = folder / FIFO.name
    changed.write_text(json.dumps({**transcript, "steps": [*transcript["steps"], step]}))
    return changed


def test_words_behind_a_recorded_error_are_no_difference_and_others_are() -> None:
    recorded = ["error", "ERR syntax error"]

    assert is_as_recorded(recorded, ["error", "ERR syntax error: FROM is missing"])
    assert not is_as_recorded(recorded, ["error", "ERR FROM is missing"])
    assert not is_as_recorded(recorded, ["simple", "ERR syntax error"])
