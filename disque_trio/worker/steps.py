"""The later steps of a chain, which are in the headers of the job before them.

Each step has its key from the start. So if a job is delivered twice, it adds the same next step
twice, and nodes with unique keys keep one of the two.
"""

from collections.abc import Sequence
from typing import Any, Final

import attrs

from disque_trio.worker import codec
from disque_trio.worker.arguments import Packed
from disque_trio.worker.codec import Form, Step
from disque_trio.worker.context import Job
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.envelope import BadBodyError, NotEncodableError
from disque_trio.worker.options import CARRIED, OWN_HEADERS, UNKEPT, Options, place_of
from disque_trio.worker.requests import Request

KEEP_S: Final = 3600
"""How long after the end of the next step a redelivered job does not duplicate that step."""
_PASSED_ON: Final = frozenset((
    "batch", "reply_codecs", "reply_key", "reply_to", "result_ttl", UNKEPT,
))  # fmt: skip


def next_request(enqueuer: Enqueuer, job: Job[Any], value: object) -> Request[Any]:
    """The ADDJOB of the next step of a job whose handler has returned `value`. Raises
    `NotEncodableError`, or `BadBodyError` for invalid headers."""
    headers = {
        name: each
        for name, each in job.headers.items()
        if name not in OWN_HEADERS or name in _PASSED_ON
    }
    steps = job.headers["then"]
    try:
        step = codec.read_step(steps[0])
        options = Options(**step.options)
    except (*codec.BAD_INPUT, LookupError) as error:
        raise BadBodyError(f"unreadable: the next step of the chain: {error}") from error
    headers |= {name: each for name, each in step.options.items() if name in CARRIED}
    if steps[1:]:
        headers["then"] = steps[1:]
    return request(enqueuer, step, options, [value] if step.is_open else [], headers)


def request(
    enqueuer: Enqueuer,
    step: Step,
    options: Options,
    first: Sequence[object],
    headers: dict[str, Any],
    keep: int = KEEP_S,
) -> Request[Any]:
    """The ADDJOB of a step. Nodes with unique keys add it once, and keep its key for `keep` more
    seconds. `first` are arguments before its own."""
    packed = _packed(step, first, enqueuer.form)
    found = enqueuer.packed(step.task, step.key, packed, options, enqueuer.form, headers)
    words = found.command.words
    unique = (b"UNIQUE", place_of(step)[1].encode(), b"KEEP", b"%d" % keep)
    command = attrs.evolve(
        found.command,
        words=(*words, *unique),
        features=(*found.command.features, "unique"),
    )
    return attrs.evolve(found, command=command)


def _packed(step: Step, first: Sequence[object], form: Form) -> Packed:
    try:
        args = [codec.part(each, form) for each in (*first, *step.args)]
        return args, {name: codec.part(each, form) for name, each in step.kwargs.items()}
    except codec.BAD_INPUT as error:
        raise NotEncodableError(f"{step.task}: what the step before returned: {error}") from error
