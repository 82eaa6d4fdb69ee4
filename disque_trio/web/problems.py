"""Errors of the API as `application/problem+json` (RFC 9457), with the cause, the value and
advice."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, Self

import attrs

from disque_trio.client.errors import ConnectionFailedError, DisqueError, LostError
from disque_trio.client.nodes import NoNodeError
from disque_trio.client.refusals import DuplicateJobError, RefusedError
from disque_trio.observe.values import Json, encoded
from disque_trio.terminal.counting import counted
from disque_trio.web.messages import Header, Response
from disque_trio.worker.operating.plans import MistakeError, SilentNodeError

PROBLEM: Final = b"application/problem+json"
_SHOWN: Final = 80
"""The maximum number of characters of an invalid value in an error."""


class ProblemError(Exception):
    """A refused request. `response` is its answer."""

    def __init__(
        self, status: int, code: str, detail: str, advice: str, *headers: Header, **more: Any
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        """Stable. For an error of a node it is the first word, such as `NOREPL`."""
        self.detail = detail
        self.advice = advice
        self.headers = headers
        self.more: Json = more

    @classmethod
    def invalid(cls, name: str, value: Any, advice: str) -> Self:
        """Return the error for an invalid value."""
        shown = value
        if not (value is None or isinstance(value, bool | int | float)) or not _is_exact(value):
            shown = str(value)[:_SHOWN].encode("utf-8", "backslashreplace").decode()
        return cls(400, "INVALID", f"'{name}' is invalid", advice, name=name, value=shown)

    @property
    def fields(self) -> Json:
        """The members of the JSON object."""
        status = self.status
        return {
            "type": f"urn:disque-trio:problem:{self.code}",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "code": self.code,
            "detail": self.detail,
            "advice": self.advice,
            **self.more,
        }

    def response(self) -> Response:
        """Return the HTTP response."""
        return Response(self.status, encoded(self.fields).encode(), PROBLEM, self.headers)


def _is_exact(value: float | None) -> bool:
    return value is None or abs(value) <= 1 << 53


@attrs.frozen
class _Meaning:
    """The HTTP status and the advice for an error code of a node."""

    status: int
    advice: str
    again_s: int | None = None
    """Seconds after which the client may try again."""


NO_JOB: Final = "if all nodes answer, it has ended: GET /api/v1/jobs?state=ended lists such jobs"
_CODES: Final[Mapping[str, _Meaning]] = {
    "ERR": _Meaning(422, "docs/commands.md has the rules of each option"),
    "BADID": _Meaning(422, "give the id as ADDJOB returned it"),
    "BADTOKEN": _Meaning(422, "give id@token as the lease returned them"),
    "NOJOB": _Meaning(404, NO_JOB),
    "ACKED": _Meaning(409, "stop working on it: it has been acknowledged"),
    "TOOLATE": _Meaning(409, "half of its TTL has passed: finish it, or reject it"),
    "DEAD": _Meaning(409, "redrive it: POST /api/v1/operations/jobs/redrive"),
    "LOST": _Meaning(409, "stop working on it: it was given to another worker"),
    "DUPLICATE": _Meaning(409, "wait until that job has ended, or give if_exists"),
    "MAXLEN": _Meaning(429, "the queue is full: try again later, or start more workers", 5),
    "PAUSED": _Meaning(503, "the queue is paused for input: try again later", 5),
    "NOREPL": _Meaning(
        503, "try again, or give a smaller replicate or sync: too few nodes confirm", 1
    ),
    "OOM": _Meaning(503, "the node has no memory for new jobs: try another one", 5),
    "MISCONF": _Meaning(503, "the node cannot write its append-only file: try another one", 5),
    "LOADING": _Meaning(503, "the node is loading its append-only file: try again later", 5),
    "LEAVING": _Meaning(503, "the node leaves the cluster: try another one", 1),
    "DUPLICATEID": _Meaning(503, "the node refuses requests now: try another one", 5),
    "NOAUTH": _Meaning(502, "the console needs the password of the nodes"),
    "WRONGPASS": _Meaning(502, "the console needs the password of the nodes"),
    "DENIED": _Meaning(502, "the node serves its own machine only"),
}
_LOOK: Final = "docs/http.md lists the paths that show what exists"
_UNREACHED: Final = "none of the queried nodes answers: try again, and see their logs"
_UNKNOWN: Final = (
    "it is unknown whether the request was carried out: check, or repeat it if that is harmless"
)


def problem_of(error: DisqueError | MistakeError) -> ProblemError:
    """Return the problem for an error of a node, of a client, or of an invalid operation."""
    if isinstance(error, SilentNodeError):
        return ProblemError(503, "UNREACHED", error.text, _UNREACHED, retry_after(1))
    if isinstance(error, MistakeError):
        return ProblemError(422, "MISTAKE", error.text, error.advice or _LOOK)
    if isinstance(error, NoNodeError) and isinstance(error.__cause__, RefusedError):
        error = error.__cause__
    if isinstance(error, RefusedError):
        return _refused(error)
    if isinstance(error, LostError):
        return ProblemError(504, "UNKNOWN", error.reason, _UNKNOWN)
    if isinstance(error, ConnectionFailedError | NoNodeError):
        return ProblemError(503, "UNREACHED", str(error), _UNREACHED, retry_after(1))
    return ProblemError(502, "REPLY", str(error), "the reply of the node is invalid: see its log")


def _refused(error: RefusedError) -> ProblemError:
    meaning = _CODES.get(error.code, _Meaning(502, "see docs/commands.md"))
    headers = () if meaning.again_s is None else (retry_after(meaning.again_s),)
    more: Json = {}
    if isinstance(error, DuplicateJobError):
        more = {"id": error.job_id, "state": error.state}
    text = error.text or error.code
    return ProblemError(meaning.status, error.code, text, meaning.advice, *headers, **more)


def too_large(most: int) -> ProblemError:
    """Return the error for a body that is too long."""
    return ProblemError(
        413, "TOOLARGE", f"the body has more than {counted(most, 'byte')}",
        "send less at a time, or use a client of the node's port",
    )  # fmt: skip


def retry_after(seconds: int) -> Header:
    """Return the Retry-After header."""
    return b"Retry-After", b"%d" % seconds
