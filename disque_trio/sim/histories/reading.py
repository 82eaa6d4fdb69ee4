"""Reads histories: lines of JSON that any client may write (docs/histories.md).

An unfinished last line of a killed client is skipped. Any other deviation from the documented
format is an error with its line, field and value.
"""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import attrs

from disque_trio.sim.histories.records import ENDLESS, Call, Fault, History, HistoryError, Limits
from disque_trio.statemachine.job import is_well_formed

_CALL: Final = ("client", "call", "at", "node", "request", "reply", "error", "lost")
_FAULT: Final = ("fault", "at", "until", "node", "memory")
_HEADER: Final = ("history", "faults")
_FORMAT: Final = 1


@attrs.define
class _Open:
    """A call in the lines read so far."""

    call: Call
    is_over: bool = False


class Reader:
    """Collects the lines of files into a history."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, int], _Open] = {}
        self._faults: list[Fault] = []
        self._knows: list[bool] = []
        """By header: does its writer know all faults?"""

    def read(self, path: str) -> None:
        """Read a file. Raise `HistoryError` or `OSError`."""
        self.feed(Path(path).read_bytes().splitlines(keepends=True), path)

    def feed(self, lines: Iterable[bytes], name: str) -> None:
        """Read lines, with their ends. Raise `HistoryError`."""
        for number, line in enumerate(lines, 1):
            if line.endswith(b"\n") and line.strip():
                self._take(_Line(_facts(line, f"{name}:{number}"), f"{name}:{number}"))

    def history(
        self, limits: Limits, *, has_all_faults: bool | None = None, has_all_clients: bool = True
    ) -> History:
        """Return the history. `has_all_faults` overrides the headers of the files."""
        calls = sorted((each.call for each in self._calls.values()), key=lambda call: call.begin)
        knows = bool(self._knows) and all(self._knows)
        return History(
            calls=calls,
            faults=sorted(self._faults, key=lambda fault: fault.at),
            has_all_faults=knows if has_all_faults is None else has_all_faults,
            has_all_clients=has_all_clients,
            limits=limits,
        )

    def _take(self, line: "_Line") -> None:
        if "history" in line.facts:
            self._knows.append(_header(line))
        elif "fault" in line.facts:
            self._faults.append(_fault(line))
        elif "call" in line.facts:
            self._take_call(line)
        else:
            advice = "a line has 'call' (and 'client', 'at'), 'fault' or 'history'"
            raise HistoryError(line.place, "", None, advice)

    def _take_call(self, line: "_Line") -> None:
        line.check_names(_CALL)
        client, number, at = line.text("client"), line.whole("call"), line.moment("at")
        key = (client, number)
        known = self._calls.get(key)
        if "request" in line.facts:
            if known is not None:
                advice = f"this client has this call at {known.call.line}: number its calls from 1 "
                raise HistoryError(line.place, "'call'", number, advice + "without a repetition")
            request = line.request()
            node = line.text("node") if "node" in line.facts else ""
            known = self._calls[key] = _Open(
                Call(client=client, number=number, node=node, request=request, begin=at,
                     line=line.place)
            )  # fmt: skip
        elif known is None:
            advice = "no line before it has the request of this call: write that when it is sent"
            raise HistoryError(line.place, "'call'", number, advice)
        outcomes = [name for name in ("reply", "error", "lost") if name in line.facts]
        if len(outcomes) > 1 or (outcomes and known.is_over):
            advice = "a call ends once, with a reply, an error, or lost"
            raise HistoryError(line.place, f"'{outcomes[-1]}'", line.facts[outcomes[-1]], advice)
        if outcomes:
            known.is_over = True
            known.call = _ended(known.call, line, outcomes[0], at)
        elif "request" not in line.facts:
            advice = "write 'reply', 'error' or 'lost' when a call ends"
            raise HistoryError(line.place, "", None, advice)


def _ended(call: Call, line: "_Line", outcome: str, at: float) -> Call:
    if at < call.begin:
        advice = (
            f"the call began at {call.begin:f} ({call.line}): use a clock that never steps back"
        )
        raise HistoryError(line.place, "'at'", at, advice)
    if outcome == "lost":
        return attrs.evolve(call, lost_at=at)
    if outcome == "error":
        return attrs.evolve(call, end=at, error=line.text("error"))
    reply = line.facts["reply"]
    _check_reply(call, line, reply)
    return attrs.evolve(call, end=at, reply=reply)


def _check_reply(call: Call, line: "_Line", reply: Any) -> None:
    """Check the form of a reply that is judged."""
    if call.command == "ADDJOB" and not _is_id(reply):
        advice = "ADDJOB returns the id of a job, such as 'D-8177b338-…-05a1'; write an error as "
        raise HistoryError(line.place, "'reply'", reply, advice + "'error'")
    if call.command == "GETJOB" and not (reply is None or _is_jobs(reply)):
        advice = "GETJOB returns null, or a list of jobs, each a list of queue, id and body"
        raise HistoryError(line.place, "'reply'", reply, advice)

    if call.command == "WAITJOB" and not (_is_end(reply) or _is_end_with_result(reply)):
        advice = "WAITJOB returns a text or null, and WITHRESULT a list of that and a text or null"
        raise HistoryError(line.place, "'reply'", reply, advice)


def _is_end(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_end_with_result(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_end, value))


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and is_well_formed(value.encode("utf-8", "surrogateescape"))


def _is_jobs(reply: Any) -> bool:
    return isinstance(reply, list) and all(
        isinstance(job, list)
        and len(job) >= 3
        and isinstance(job[0], str)
        and _is_id(job[1])
        and isinstance(job[2], str)
        for job in reply
    )


def _header(line: "_Line") -> bool:
    line.check_names(_HEADER)
    if line.facts["history"] != _FORMAT:
        advice = f"this version reads format {_FORMAT}: judge it with a later version"
        raise HistoryError(line.place, "'history'", line.facts["history"], advice)
    faults = line.facts.get("faults", "unknown")
    if faults not in ("known", "unknown"):
        raise HistoryError(line.place, "'faults'", faults, "write 'known' or 'unknown'")
    return bool(faults == "known")


def _fault(line: "_Line") -> Fault:
    line.check_names(_FAULT)
    at = line.moment("at")
    until = line.moment("until") if "until" in line.facts else ENDLESS
    if until < at:
        raise HistoryError(line.place, "'until'", until, f"the fault began at {at:f}")
    memory = line.facts.get("memory", "kept")
    if memory not in ("kept", "lost"):
        advice = "write 'lost' if a node may have lost jobs, or 'kept'"
        raise HistoryError(line.place, "'memory'", memory, advice)
    node = line.text("node") if "node" in line.facts else ""
    return Fault(
        kind=line.text("fault"), at=at, until=until, node=node, has_lost_memory=memory == "lost"
    )


def _facts(line: bytes, place: str) -> dict[str, Any]:
    try:
        facts = json.loads(line)
    except ValueError as error:
        raise HistoryError(place, "", None, f"no JSON ({error}): write one object a line") from None
    if not isinstance(facts, dict):
        raise HistoryError(place, "the line", facts, "write one JSON object a line")
    return facts


@attrs.frozen
class _Line:
    """The fields of a line, each checked when it is read."""

    facts: dict[str, Any]
    place: str

    def check_names(self, known: Iterable[str]) -> None:
        """Raise `HistoryError` for a field that has no meaning."""
        for name in self.facts:
            if name not in known:
                raise HistoryError(
                    self.place, "a field", name, f"the fields of such a line are {', '.join(known)}"
                )

    def _get(self, name: str, advice: str) -> Any:
        if name not in self.facts:
            raise HistoryError(self.place, "", None, f"'{name}' is missing: {advice}")
        return self.facts[name]

    def text(self, name: str) -> str:
        """Return a text that is not empty."""
        advice = "write a text that is not empty"
        value = self._get(name, advice)
        if not isinstance(value, str) or not value:
            raise HistoryError(self.place, f"'{name}'", value, advice)
        return value

    def whole(self, name: str) -> int:
        """Return the number of a call."""
        advice = "write a whole number, different for each call of the client"
        value = self._get(name, advice)
        if type(value) is not int:
            raise HistoryError(self.place, f"'{name}'", value, advice)
        return value

    def moment(self, name: str) -> float:
        """Return a time."""
        advice = "write a time in seconds, such as 1795765200.25"
        value = self._get(name, advice)
        if type(value) not in (int, float) or not math.isfinite(value):
            raise HistoryError(self.place, f"'{name}'", value, advice)
        return float(value)

    def request(self) -> list[str]:
        """Return the words of a request."""
        value = self.facts["request"]
        kinds = (str, int, float)
        if not isinstance(value, list) or not value or not all(type(w) in kinds for w in value):
            advice = "write the words of the command, such as ['ADDJOB', 'q', 'body', '5000']"
            raise HistoryError(self.place, "'request'", value, advice)
        return [str(word) for word in value]
