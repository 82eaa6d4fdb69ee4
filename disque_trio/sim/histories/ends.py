"""Judges H12: WAITJOB reports a possible end of the job, and a result that an ACKJOB gave."""

from collections.abc import Iterator
from typing import Any

import attrs

from disque_trio.sim.histories.facts import Facts, Job, JobReport
from disque_trio.sim.histories.records import Call, Seconds, Violation
from disque_trio.statemachine.commandoptions import KEEP_RESULT

_EARLY_S = 1.0
"""A TTL may end this much early, because holders count it in whole seconds."""
_ENDING = ("ACKJOB", "FASTACK")
_OF_QUEUES = ("PURGE", "CANCEL")


@attrs.frozen(eq=False)
class _AckResult:
    """An ACKJOB with a result."""

    call: Call
    result: str
    keep: Seconds


def check_ends(facts: Facts) -> Iterator[Violation]:
    """H12: judge the replies to WAITJOB."""
    if not facts.history.has_all_clients:
        return
    for call in facts.waits:
        job = facts.jobs.get(call.request[1])
        if job is None or not job.adds:
            continue
        end, result = _end_and_result(call)
        results = [
            each for report in job.reports_of("ACKJOB") if (each := _ack_result(report)) is not None
        ]
        yield from _check_end(facts, job, call, end)
        yield from _check_result(facts, job, call, result, results)


def _end_and_result(call: Call) -> tuple[str, str | None]:
    """Return the end and the result of a reply; empty and None if there is none."""
    reply: Any = call.reply
    if not isinstance(reply, list):
        return reply if call.is_ok and isinstance(reply, str) else "", None
    return reply[0] or "", reply[1]


def _ack_result(report: JobReport) -> _AckResult | None:
    words = report.call.request[2:]
    options = {word.upper(): value for word, value in zip(words[::2], words[1::2], strict=False)}
    if "RESULT" not in options:
        return None
    try:
        keep = float(options.get("KEEP", KEEP_RESULT / 1000))
    except ValueError:
        keep = 0.0
    return _AckResult(report.call, options["RESULT"], keep)


def _check_end(facts: Facts, job: Job, call: Call, end: str) -> Iterator[Violation]:
    if end == "acked":
        acks = any(report.call.begin <= call.end for report in job.reports_of(*_ENDING))
        replaced = any(add.if_exists == "replace" and add.queue == job.queue for add in facts.adds)
        if not acks and not replaced and not facts.has_call(job.queue, *_OF_QUEUES):
            yield _violation(job, call, "WAITJOB reported that it was acknowledged: by nobody")
    elif end == "expired" and not facts.history.has_wrong_clocks:
        ends = min(add.begin + add.ttl for add in job.adds)
        early = ends - call.end - facts.history.limits.skew - _EARLY_S
        if early > 0:
            text = f"WAITJOB reported that it had expired {early:.3f} s before its TTL was over"
            yield _violation(job, call, text)


def _check_result(
    facts: Facts, job: Job, call: Call, result: str | None, results: list[_AckResult]
) -> Iterator[Violation]:
    if result is not None:
        if not any(each.result == result and each.call.begin <= call.end for each in results):
            yield _violation(job, call, "WAITJOB returned a result that no ACKJOB has given")
        return
    if "WITHRESULT" not in map(str.upper, call.request):
        return
    if any(report.call.node == call.node for report in job.reports_of("DELJOB")):
        return  # DELJOB drops the result at this node
    for each in results:
        # The node that has counted the acknowledgement keeps the result.
        is_kept = each.call.reply == 1 and each.call.node == call.node != ""
        ends = each.call.begin + each.keep - facts.history.limits.skew
        is_answered = call.is_ok or (call.error or "").startswith("NOJOB")
        if (
            is_kept
            and is_answered
            and each.call.end < call.begin
            and call.end < ends
            and facts.history.keeps_memory(each.call.begin, call.end)
        ):
            text = "WAITJOB returned no result at the node that keeps one"
            yield _violation(job, call, text, each.call.line)


def _violation(job: Job, call: Call, text: str, *lines: str) -> Violation:
    places = (job.adds[0].call.line, *lines, call.line)
    return Violation(property="H12", text=text, job=job.id, at=call.end, lines=places)
