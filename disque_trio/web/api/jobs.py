"""Routes that add, take, acknowledge and return jobs: each is one command of a node.

The fields follow from the tables of options, so each option of a command is a field here.
"""

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import trio

from disque_trio.client import commands
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.client.records import Job
from disque_trio.observe.values import Json, given_name, name_fields
from disque_trio.statemachine import commandoptions, joboptions
from disque_trio.statemachine.joboptions import Option
from disque_trio.web.api.reading import CODED_NAME, QUEUE, QUEUE_NAME
from disque_trio.web.api.routes import (
    LARGE,
    PREFIX,
    Call,
    Reply,
    Route,
)
from disque_trio.web.api.schemas import (
    BASE64,
    DELIVERY,
    FLAG,
    NUMBER,
    OBJECT,
    TEXT,
    WHOLE,
    Field,
    Schema,
    closed,
    many,
    maybe,
    named,
    one_of,
    record,
    seconds,
    whole,
)
from disque_trio.web.problems import problem_of
from disque_trio.web.roles import JOBS

AT_ONCE: Final = 1000
"""The maximum number of jobs in one request."""
LEASED: Final = 100
"""The maximum number of jobs in one lease."""
QUEUES: Final = 100
WAIT_S: Final = 60.0
"""The maximum time that a request waits."""
_RETURN_S: Final = 5.0

# Options as fields.


def _schema(option: Option) -> Schema:
    if option.usage == "":
        return FLAG
    if option.usage == "n|AUTO":
        return {"anyOf": [whole(option.least, option.most), one_of("auto")]}
    if option.is_time:
        bounds = seconds if option.has_decimals else whole
        return bounds(option.least, option.most)
    if option.is_number:
        return whole(option.least, min(option.most, 1 << 53))
    if option.is_text or option.usage.startswith("["):
        return named(option.least, 256 if option.usage == "key" else option.most)
    return one_of(*option.usage.split("|"))


def _field_name(option: Option) -> str:
    """Return the name of an option's field."""
    return option.name.removeprefix("is_")


def _field(option: Option) -> Field:
    plain = option.meaning.replace("`", "").replace("*", "")
    default = f" (default: {option.default.replace('`', '')})" if option.default else ""
    return Field(name=_field_name(option), about=plain + default, schema=_schema(option))


OPTIONS: Final = tuple(map(_field, joboptions.OPTIONS))
"""The options of ADDJOB."""
_ARGUMENTS: Final = {_field_name(each): each.name for each in joboptions.OPTIONS}
TIMEOUT: Final = Field(
    name="timeout",
    about="seconds to wait for the replicas",
    schema=seconds(0.001, WAIT_S),
    default=commands.ADD_TIMEOUT_S,
)
BODY: Final = Field(
    name="body", about="of the job, as text", schema=TEXT, coded=BASE64, is_required=True
)
_ONE: Final = closed((QUEUE, BODY, *OPTIONS, TIMEOUT))
"""The schema of one job in a request with several."""

# Adding.


async def _add(api: Any, call: Call) -> Reply:
    body = call.raw if call.raw is not None else _body_of(call.values)
    asked = _addjob(call.values["queue"], body, call.values)
    id = await api.jobs.run(asked)
    return Reply({"id": id}, 201, ((b"Location", _where(id).encode()),))


async def _add_all(api: Any, call: Call) -> Reply:
    """Add several jobs; each succeeds or fails separately."""
    asked = [
        _addjob(given_name(each, "queue"), _body_of(each), each) for each in call.values["jobs"]
    ]
    results = await api.jobs.run_all(asked)
    return Reply(
        {
            "jobs": [
                {"problem": problem_of(each).fields}
                if isinstance(each, DisqueError)
                else {"id": each}
                for each in results
            ],
            "failed": sum(isinstance(each, DisqueError) for each in results),
        }
    )


def _addjob(queue: str, body: bytes, values: Mapping[str, Any]) -> Command[str]:
    options = {name: values[field] for field, name in _ARGUMENTS.items() if field in values}
    return commands.addjob(queue, body, timeout=values["timeout"], **options)


def _body_of(values: Mapping[str, Any]) -> bytes:
    return values["body"].encode() if "body" in values else base64.b64decode(values["body_b64"])


def _where(id: str) -> str:
    return f"{PREFIX}/jobs/{quote(id, safe='')}"


# Taking.


async def _lease(api: Any, call: Call) -> Reply:
    """Run GETJOB. If the other side closes the connection, the call is cancelled, and the client
    releases jobs that it has received for it."""
    values, wait = call.values, call.values["timeout"]
    coded = ({"queue_b64": each} for each in values.get("queues_b64", ()))
    queues = values.get("queues") or [given_name(each, "queue") for each in coded]
    asked = commands.getjob(*queues, count=int(call.values["count"]), timeout=wait, with_meta=True)
    with api.waiting():
        jobs: list[Job] = await api.jobs.run(asked)

    async def undelivered() -> None:
        if jobs:
            with trio.move_on_after(_RETURN_S, shield=True):
                await api.jobs.run(commands.release(*jobs))

    return Reply({"jobs": list(map(_leased, jobs))}, undelivered=undelivered)


def _leased(job: Job) -> Json:
    meta = job.meta
    try:
        body = {"body": job.body.decode(), "body_b64": None}
    except UnicodeDecodeError:
        body = {"body": None, "body_b64": base64.b64encode(job.body).decode()}
    return {
        "id": job.id,
        "delivery": f"{job.id}@{meta.token}" if meta else job.id,
        **name_fields(job.queue, "queue"),
        **body,
        "nacks": job.nacks,
        "additional_deliveries": job.additional_deliveries,
        "attempt": meta.attempt if meta else 1 + job.nacks + job.additional_deliveries,
        "lease_s": meta.lease if meta else None,
        "left_s": meta.ttl if meta else None,
        "age_s": meta.age if meta else None,
        "priority": meta.priority if meta else 0,
        "group": meta.group if meta else None,
        "key": meta.key if meta else None,
    }


# Giving back.

Verb = Callable[..., Command[int]]


def _of_jobs(verb: Verb) -> Callable[[Any, Call], Awaitable[Reply]]:
    """Return a handler that sends the command for the jobs of the path or of the body. For an id
    with a token, the client asks the node that delivered the job."""

    async def answer(api: Any, call: Call) -> Reply:
        named_jobs = [call.values["id"]] if "id" in call.values else call.values["jobs"]
        options = {name: each for name, each in call.values.items() if name not in ("id", "jobs")}
        if "result" not in options:
            options.pop("keep", None)  # it applies only to a result
        return Reply({"count": await api.jobs.run(verb(*named_jobs, **options))})

    return answer


async def _renew(api: Any, call: Call) -> Reply:
    return Reply({"lease_s": await api.jobs.run(commands.working(call.values["id"]))})


_DELIVERY: Final = Field(
    name="id", about="id of the job, or id@token of the delivery", schema=DELIVERY,
    is_required=True,
)  # fmt: skip
_DELIVERIES: Final = Field(
    name="jobs", about="ids, or id@token of deliveries", schema=many(DELIVERY, AT_ONCE, 1),
    is_required=True,
)  # fmt: skip
_COUNT: Final = record(count=WHOLE)
_NACK: Final = tuple(map(_field, commandoptions.NACK.values()))
_RELEASE: Final = tuple(map(_field, commandoptions.RELEASE.values()))
_RESULT: Final = (
    Field(
        name="result", schema=TEXT,
        about="the result of the job, as text, which nodes keep: GET /jobs/{id} shows it",
    ),
    Field(
        name="keep", schema=seconds(0.001, commandoptions.ACKJOB[b"KEEP"].most),
        about="with result: seconds for which it is kept (default: 3600)",
    ),
)  # fmt: skip
"""The fields of the acknowledgement of one job."""
_VERBS: Final[Mapping[str, tuple[Verb, str, tuple[Field, ...]]]] = {
    "ack": (commands.ackjob, "Acknowledge: the job has been done, and ends at all nodes.", ()),
    "nack": (commands.nack, "Reject: the job has failed, and is requeued.", _NACK),
    "release": (
        commands.release,
        "Give back a job that was not begun, which does not count as a failure.",
        _RELEASE,
    ),
}


def _verbs() -> Sequence[Route]:
    found = []
    for name, (verb, about, fields) in _VERBS.items():
        of_both: Json = {
            "method": "POST", "about": about, "right": JOBS, "answer": _of_jobs(verb),
            "reply": _COUNT, "has_conflicts": True,
        }  # fmt: skip
        found += [
            Route(path=f"/jobs/{name}", name=f"{name}All", body=(_DELIVERIES, *fields), **of_both),
            Route(
                path=f"/jobs/{{id}}/{name}",
                name=name,
                places=(_DELIVERY,),
                body=_RESULT if name == "ack" else fields,
                **of_both,
            ),
        ]
    return found


_LEASED: Final = record(
    id=TEXT, delivery=TEXT, queue=TEXT, body=maybe(TEXT), body_b64=maybe(TEXT), nacks=WHOLE,
    additional_deliveries=WHOLE, attempt=WHOLE, lease_s=maybe(NUMBER), left_s=maybe(NUMBER),
    age_s=maybe(NUMBER), priority=WHOLE, group=maybe(TEXT), key=maybe(TEXT),
)  # fmt: skip
ROUTES: Final[Sequence[Route]] = (
    Route(
        method="POST", path="/queues/{queue}/jobs", name="addJob", right=JOBS,
        about="ADDJOB. With a content type other than application/json the body is that of the "
        "job, and the options are in the query.",
        answer=_add, places=(QUEUE,), query=(*OPTIONS, TIMEOUT), body=(BODY, *OPTIONS, TIMEOUT),
        has_raw=True, most=LARGE, reply=record(id=TEXT), status=201, has_conflicts=True,
    ),
    Route(
        method="POST", path="/jobs", name="addJobs", right=JOBS,
        about="ADDJOB of several jobs, each with its queue, body and options. Each succeeds or "
        "fails on its own.",
        answer=_add_all,
        body=(
            Field(
                name="jobs", about="the fields of addJob, and `queue`",
                schema=many(_ONE, AT_ONCE, 1), is_required=True,
            ),
        ),
        most=LARGE, reply=record(jobs=many(OBJECT), failed=WHOLE),
    ),
    Route(
        method="POST", path="/jobs/lease", name="lease", right=JOBS,
        about="GETJOB: take jobs. Acknowledge each before its lease ends, or it is requeued.",
        answer=_lease,
        body=(
            Field(
                name="queues", about="names, in order of preference",
                schema=many(QUEUE_NAME, QUEUES, 1), coded=many(CODED_NAME, QUEUES, 1),
                is_required=True,
            ),
            Field(name="count", about="maximum number of jobs", schema=whole(1, LEASED), default=1),
            Field(
                name="timeout", about="seconds to wait for the first one; 0 does not wait",
                schema=seconds(0, WAIT_S), default=0,
            ),
        ),
        waits=True, reply=record(jobs=many(_LEASED)),
    ),
    *_verbs(),
    Route(
        method="POST", path="/jobs/{id}/working", name="renew", right=JOBS,
        about="WORKING: renew the lease.", answer=_renew, places=(_DELIVERY,),
        reply=record(lease_s=WHOLE), has_conflicts=True,
    ),
)  # fmt: skip
