"""Replays a transcript against a server, and finds the replies that differ (README.md)."""

import json
import math
import re
import time
from pathlib import Path
from typing import Any, Final

import attrs

from disque_trio.statemachine.base import NULL_ARRAY, Failure, Reply, Status
from tests.cluster.talk import Client

Shown = list[Any]
"""A reply as transcripts have it, such as `["int", 1]`."""

ANYTHING: Final[Shown] = ["*"]
PATIENCE_S: Final = 30.0
_JOB_ID: Final = re.compile(r"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}")
_NODE_ID: Final = re.compile(r"\b[0-9a-f]{40}\b")
_VOLATILE: Final = {
    "age", "ctime", "idle", "import-rate", "next-awake-within", "next-requeue-within", "ttl",
}  # fmt: skip
"""Names in replies whose values are others in each run."""
_APPENDED: Final = {"QSTAT": 20}
"""Commands whose replies have more behind the original's elements, and how many those are."""
_UNORDERED: Final = {"JSCAN", "QSCAN"}


@attrs.frozen
class Difference:
    """A step, counted from 0, whose reply is not the recorded one."""

    transcript: str
    step: int
    command: list[str]
    recorded: Shown
    replied: Shown

    def __str__(self) -> str:
        return (
            f"{self.transcript}#{self.step}: {self.command}\n"
            f"  recorded {self.recorded}\n  replied  {self.replied}"
        )


@attrs.define
class Outcome:
    """What came of one transcript."""

    transcript: str
    replies: int = 0
    """How many were compared."""
    seconds: float = 0.0
    held_up_s: float = 0.0
    """The part of them in which no step meant to wait: what the machine had no time for."""
    differences: list[Difference] = attrs.Factory(list)


def replay(port: int, path: Path) -> Outcome:
    """Replay a transcript against the server at this port, whose jobs are deleted first."""
    started = time.monotonic()
    talk = _Talk(port, Outcome(path.name))
    try:
        talk.client.call("DEBUG", "FLUSHALL")
        waited = 0.0
        for number, step in enumerate(json.loads(path.read_text())["steps"]):
            began = time.monotonic()
            talk.take(number, step)
            waited += min(time.monotonic() - began, _may_wait_s(step))
    finally:
        talk.close()
    talk.outcome.seconds = time.monotonic() - started
    talk.outcome.held_up_s = talk.outcome.seconds - waited
    return talk.outcome


def is_as_recorded(recorded: Shown, replied: Shown) -> bool:
    """Is it the recorded reply? An error may say more behind the recorded words."""
    if recorded == ANYTHING:
        return True
    match recorded, replied:
        case ["error", str(wanted)], ["error", str(found)]:
            return found.startswith(wanted)
        case ["array", list(wanted)], ["array", list(found)]:
            return len(wanted) == len(found) and all(map(is_as_recorded, wanted, found))
    return bool(recorded == replied)


class _Talk:
    """The connections of one replay, and the names of the IDs that it has seen."""

    def __init__(self, port: int, outcome: Outcome) -> None:
        self._port = port
        self._clients = {"main": Client(port, PATIENCE_S)}
        self._names: dict[str, str] = {}
        """Job IDs in order of appearance, each with the name that transcripts have for it."""
        self.client = self._clients["main"]
        self.outcome = outcome

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def take(self, number: int, step: dict[str, Any]) -> None:
        """Do what the step says."""
        match step:
            case {"sleep": seconds}:
                time.sleep(seconds)
            case {"connect": name}:
                if name not in self._clients:
                    self._clients[name] = Client(self._port, PATIENCE_S)
                self.client = self._clients[name]
            case {"send": words}:
                self._send(words)
            case {"cmd": words, "reply": recorded}:
                self._send(words)
                self._compare(number, words, recorded)
            case {"receive": recorded}:
                self._compare(number, ["(what was sent before)"], recorded)
            case _:
                raise ValueError(f"no step of a transcript: {step}")

    def _send(self, words: list[str]) -> None:
        self.client.send(*(self._revealed(word).encode("latin-1") for word in words))

    def _compare(self, number: int, command: list[str], recorded: Shown) -> None:
        replied = self._shown(self.client.reply())
        if replied[0] == "array":
            replied[1] = replied[1][: _APPENDED.get(command[0].upper())]
        if command[0].upper() in _UNORDERED:
            _sort(replied)
        self.outcome.replies += 1
        if not is_as_recorded(recorded, replied):
            name = self.outcome.transcript
            self.outcome.differences.append(Difference(name, number, command, recorded, replied))

    def _shown(self, reply: Reply) -> Shown:
        """A reply as transcripts have it."""
        match reply:
            case None:
                return ["null"]
            case int():
                return ["int", reply]
            case bytes():
                return ["bulk", self._hidden(reply)]
            case Status(text):
                return ["simple", self._hidden(text)]
            case Failure(text):
                return ["error", self._hidden(text)]
            case list():
                return ["array", _without_volatile([self._shown(item) for item in reply])]
        assert reply is NULL_ARRAY, reply
        return ["nullarray"]

    def _hidden(self, text: bytes) -> str:
        """Text with names in place of IDs."""

        def name(found: re.Match[str]) -> str:
            return self._names.setdefault(found[0], f"<ID:{len(self._names)}>")

        return _NODE_ID.sub("<NODE>", _JOB_ID.sub(name, text.decode("latin-1")))

    def _revealed(self, text: str) -> str:
        """Text with IDs in place of names."""
        for job_id, name in self._names.items():
            text = text.replace(name, job_id)
        return text


def _may_wait_s(step: dict[str, Any]) -> float:
    """How long a step may last on an idle machine: seconds."""
    match [word.upper() for word in step.get("cmd", ())]:
        case ["GETJOB", *options] if "NOHANG" not in options:
            timeout = re.search(r"\bTIMEOUT (\d+)", " ".join(options))
            return int(timeout[1]) / 1000 if timeout else math.inf
    return math.inf if "receive" in step else float(step.get("sleep", 0))


def _without_volatile(items: list[Shown]) -> list[Shown]:
    before: list[Shown] = [["null"], *items]
    return [
        ANYTHING if name[0] == "bulk" and name[1] in _VOLATILE else item
        for name, item in zip(before, items, strict=False)
    ]


def _sort(scan: Shown) -> None:
    """What QSCAN and JSCAN list has no order, and their cursor no meaning for others."""
    match scan:
        case ["array", [_, ["array", list(items)]]]:
            scan[1] = [ANYTHING, ["array", sorted(items, key=json.dumps)]]
