"""The requests of simulated clients."""

from collections.abc import Sequence
from typing import Final
from zlib import crc32

from disque_trio.sim.scenarios.plan import Add, Consumer
from disque_trio.sim.scenarios.vocabulary import DELAYING
from disque_trio.statemachine import joboptions
from disque_trio.statemachine.base import Reply

_WITH_TOKEN: Final = ("begin", "working", "nack", "nack-delay", "release", "release-delay", "bury")


def add_words(add: Add) -> list[bytes]:
    """Return the words of ADDJOB."""
    body = add.body.ljust(add.size, ".")
    words = ["ADDJOB", add.queue, body, add.timeout_ms, *joboptions.words(add.options)]
    return [word if isinstance(word, bytes) else str(word).encode() for word in words]


def getjob_words(plan: Consumer) -> list[bytes]:
    """Return the words of GETJOB."""
    words: list[str | int] = ["GETJOB"]
    words += ["TIMEOUT", plan.poll_ms] if plan.poll_ms else ["NOHANG"]
    words += ["COUNT", plan.count]
    words += ["WITHMETA"] if plan.meta else ["WITHCOUNTERS"]
    words += ["TIED"] if plan.tied else []
    words += ["HELD"] if plan.held else []
    words += ["FROM", *plan.queues]
    return [str(word).encode() for word in words]


def tokens_of(reply: list[Reply]) -> dict[bytes, bytes]:
    """Return the tokens, by job."""
    return {job[1]: job[job.index(b"token") + 1] for job in reply if isinstance(job, list)}  # type: ignore[misc]


def error_of(job: bytes) -> bytes:
    """Return the error in each NACK of the job (`checkers.errors`)."""
    return b"ValueError: not " + job


def result_words(job: bytes) -> list[bytes]:
    """Return the options of an ACKJOB with a result, which is kept for 2.5 or 30 seconds."""
    return [b"RESULT", b"result of " + job, b"KEEP", b"2.5" if crc32(job) % 2 else b"30"]


def way_words(
    way: str, jobs: Sequence[bytes], tokens: dict[bytes, bytes], delay_ms: int = 0
) -> list[bytes]:
    """Return the command that ends the first of these jobs in this way, with its token if the
    command takes one."""
    if way == "together":
        return [b"ACKJOB", *jobs]
    job = jobs[0]
    if way == "result":
        return [b"ACKJOB", job, *result_words(job)]
    if way == "look":
        return [b"WAITJOB", job, b"NOHANG", b"WITHRESULT"]
    token = tokens.get(job, b"") if way in _WITH_TOKEN else b""
    named = job + b"@" + token if token else job
    if way == "bury":
        return [b"NACK", named, b"DEAD", b"cannot be done", b"ERROR", error_of(job)]
    command = way.partition("-")[0].upper().encode()
    words = [command, named]
    words += [b"DELAY", b"%d.%03d" % divmod(delay_ms, 1000)] if way in DELAYING else []
    return [*words, b"ERROR", error_of(job)] if command == b"NACK" else words
