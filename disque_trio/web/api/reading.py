"""Routes that return the data of the console's pages: topics of the observer, as resources."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from disque_trio.observe.history import SPANS
from disque_trio.observe.job_search import MOST, ROWS, STATES
from disque_trio.observe.operations import OPERATIONS
from disque_trio.observe.queue_list import ONLY, SORTS
from disque_trio.observe.values import Json, encoded, name_fields
from disque_trio.web.api.routes import Call, Reply, Route
from disque_trio.web.api.schemas import (
    BASE64,
    FLAG,
    JOB_ID,
    NUMBER,
    OBJECT,
    TEXT,
    TEXTS,
    WHOLE,
    Field,
    Schema,
    by_name,
    many,
    maybe,
    named,
    one_of,
    record,
    seconds,
    whole,
)
from disque_trio.web.problems import NO_JOB, ProblemError
from disque_trio.web.roles import SEE

QUEUE_NAME: Final = named(1, 1024)
CODED_NAME: Final[Schema] = {**BASE64, "minLength": 4, "maxLength": 1368}
QUEUE: Final = Field(
    name="queue", about="name of the queue", schema=QUEUE_NAME, coded=CODED_NAME, is_required=True
)
ID: Final = Field(name="id", about="id of the job", schema=JOB_ID, is_required=True)
CURSOR: Final = Field(name="cursor", about="`next` of the previous page", schema=named(1, 500))
_UNREACHED: Final = by_name(TEXT)
"""By address, why a node did not answer."""
_NUMBERS: Final = maybe(NUMBER)
_COUNT: Final = maybe(WHOLE)
_POINTS: Final = many(_NUMBERS)

# Rows.

FINDING: Final = record(level=TEXT, text=TEXT)
NODE: Final = record(
    node=TEXT, id=TEXT, name=TEXT, zone=TEXT, state=TEXT, why=TEXT, jobs=_COUNT, queued=_COUNT,
    memory=_COUNT, maxmemory=_COUNT, clients=_COUNT, waiting=_COUNT, under_replicated=_COUNT,
    added_s=_NUMBERS, delivered_s=_NUMBERS, acked_s=_NUMBERS, commands_s=_NUMBERS, version=TEXT,
    uptime_s=_COUNT, clock_ms=_COUNT,
)  # fmt: skip
QUEUE_ROW: Final = record(
    name=TEXT, jobs=WHOLE, where=by_name(WHOLE), age_s=_NUMBERS, in_s=_NUMBERS, out_s=_NUMBERS,
    delayed=_COUNT, delayed_due_s=_NUMBERS, leased=_COUNT, dead=_COUNT, restored=_COUNT,
    restored_due_s=_NUMBERS, dead_is_least=FLAG, restored_is_least=FLAG, delayed_is_most=FLAG,
    takers=WHOLE, served=FLAG, paused=by_name(TEXT),
    limited=FLAG,
    limits=maybe(
        record(
            text=TEXT, concurrency=WHOLE, rate=WHOLE, rate_per=NUMBER, burst=WHOLE, is_loose=FLAG,
            group_concurrency=WHOLE, group_rate=WHOLE, group_rate_per=NUMBER, group_burst=WHOLE,
        )
    ),
)  # fmt: skip
_BODY: Final[Mapping[str, Schema]] = {
    "body": maybe(TEXT), "body_b64": maybe(BASE64), "bytes": _COUNT
}  # fmt: skip
"""The beginning of the body, as text or in base64, and its full length."""
_RESULT: Final = record(at_ms=WHOLE, left_s=NUMBER, **_BODY)
JOB: Final = record(
    id=TEXT, state=TEXT, queue=TEXT, task=TEXT, key=TEXT, attempt=WHOLE, limit=_COUNT,
    error=maybe(OBJECT), added_ms=WHOLE, due_s=_NUMBERS, worker=TEXT, since_s=_NUMBERS, **_BODY,
)  # fmt: skip
_LISTED_JOB: Final = record(
    id=TEXT, state=TEXT, queue=TEXT, added_ms=WHOLE, deliveries=WHOLE, nacks=WHOLE, **_BODY
)
GROUP: Final = record(
    queue=TEXT, task=TEXT, error=TEXT, place=TEXT, message=TEXT, messages=WHOLE, count=WHOLE,
    first_ms=WHOLE, last_ms=WHOLE,
)  # fmt: skip
WORKER: Final = record(
    control=TEXT, name=TEXT, host=TEXT, pid=WHOLE, queues=TEXTS, slots=WHOLE, busy=WHOLE,
    running=many(record(task=TEXT, id=TEXT, since_s=NUMBER)), beat_s=NUMBER, state=TEXT, does=TEXT,
    healthy=FLAG, why=TEXT,
)  # fmt: skip
TASK: Final = record(
    task=TEXT, runs=WHOLE, failures=WHOLE, mean_s=_NUMBERS, p50_s=_NUMBERS, p95_s=_NUMBERS,
    p99_s=_NUMBERS, running=WHOLE, longest_s=_NUMBERS, workers=WHOLE,
)  # fmt: skip
_RUNNING: Final = record(id=TEXT, task=TEXT, queue=TEXT, worker=TEXT, since_s=NUMBER)
_DELAYED: Final = record(id=TEXT, queue=TEXT, due_ms=WHOLE)
_SCHEDULE: Final = record(
    schedule=TEXT, state=TEXT, name=TEXT, queue=TEXT, when=TEXT, next_ms=_COUNT, workers=WHOLE
)
OPERATION: Final = record(
    key=TEXT, family=TEXT, name=TEXT, label=TEXT, about=TEXT, arguments=many(OBJECT), is_grave=FLAG
)  # fmt: skip


_FLOW: Final = {
    "id": TEXT, "queue": TEXT, "added_ms": WHOLE, "until_ms": WHOLE, "size": WHOLE, "tasks": TEXTS,
    "state": maybe(TEXT), "counts": maybe(by_name(WHOLE)),
}  # fmt: skip
_MEMBER: Final = record(task=TEXT, after=many(many(WHOLE)), steps=WHOLE, state=TEXT, id=TEXT)


def _answer(**fields: Schema) -> Schema:
    return record(**fields, unreached=_UNREACHED)


# Handlers.


def _topic(topic: str, **renamed: str) -> Any:
    """Return a handler for a topic. With `renamed`, the reply has only these fields of the topic's
    data, under new names."""

    async def answer(api: Any, call: Call) -> Reply:
        data = await api.ask(topic, _args(call.values))
        if renamed:
            fields = {name: data.get(of) for name, of in renamed.items()}
            data = {**fields, "unreached": data["unreached"]}
        return Reply(data)

    return answer


def _args(values: Mapping[str, Any]) -> Json:
    """Return arguments in the form that a browser sends."""
    args: Json = {}
    for name, value in values.items():
        args |= name_fields(value, name) if isinstance(value, str) else {name: value}
    return args


async def _queues(api: Any, call: Call) -> Reply:
    """Return a page of queues. The cursor is the number of a page."""
    page = opened(call, int)
    args = {**call.values, "page": page or 0}
    data = await api.ask("queues", args)
    is_last = data["page"] + 1 >= data["pages"]
    return Reply(
        {
            "total": data["total"],
            "queues": data["rows"] if data["page"] == (page or 0) else [],
            "next": None if is_last else sealed(data["page"] + 1),
            "uncounted": data["uncounted"],
            "unreached": data["unreached"],
        }
    )


async def _queue(api: Any, call: Call) -> Reply:
    args = _args({"name": call.values["queue"], "bodies": call.values.get("bodies", False)})
    data = await api.ask("queue", args)
    if data["queue"] is None:
        raise ProblemError(
            404, "NOQUEUE", "no node that answers has a queue of this name",
            "GET /api/v1/queues lists those with jobs or clients",
        )  # fmt: skip
    return Reply(data)


async def _jobs(api: Any, call: Call) -> Reply:
    """Return a page of jobs. The cursor is the position of the last job of the previous page."""
    after, limit = opened(call, list), call.values["limit"]
    asked = {name: each for name, each in call.values.items() if name not in ("cursor", "limit")}
    data = await api.ask("jobs", {**_args(asked), "most": MOST})
    rows = data["jobs"] if after is None else _behind(data["jobs"], *after)
    shown = rows[:limit]
    return Reply(
        {
            "jobs": shown,
            "next": sealed(_place(shown[-1])) if len(rows) > limit else None,
            "is_cut": data["is_cut"],
            "unreached": data["unreached"],
        }
    )


def _place(row: Json) -> list[Any]:
    """Return the position of a job: the time it was added, or for an ended job its negated end,
    because the latest is listed first."""
    ended = row["ended_ms"]
    return [row["added_ms"] if ended is None else -ended, row["id"]]


def _behind(rows: Sequence[Json], at: int, id: str) -> Sequence[Json]:
    """Return the rows after this job. If the list does not contain it any more, all rows with the
    same time are included again, so that none is missing."""
    for number, row in enumerate(rows):
        if row["id"] == id:
            return rows[number + 1 :]
    return [row for row in rows if _place(row)[0] >= at]


async def _job(api: Any, call: Call) -> Reply:
    data = await api.ask("job", {"id": call.values["id"]})
    if data["found"]:
        return Reply(data)
    if "summary" not in data:
        raise ProblemError(404, "NOJOB", data["why"], NO_JOB)
    body = {name: data["summary"][name] for name in _BODY}
    return Reply({"copies": [], "holders": [], "explain": [], **body, **data})  # it has ended


async def _flow(api: Any, call: Call) -> Reply:
    data = await api.ask("flow", {"id": call.values["id"]})
    if not data["found"]:
        raise ProblemError(
            404, "NOFLOW", data["why"], "GET /api/v1/flows lists those that have not ended"
        )
    return Reply(data)


async def _operations(_api: Any, call: Call) -> Reply:
    allowed = [each for each in OPERATIONS.values() if call.user.may_do(each)]
    return Reply({"operations": [each.as_json() for each in allowed]})


def sealed(place: Any) -> str:
    """Return a cursor. It is opaque to clients, so that its content may change."""
    return base64.urlsafe_b64encode(encoded(place).encode()).decode().rstrip("=")


def opened(call: Call, kind: type) -> Any:
    """Return the content of the call's cursor; None without one. Raise `ProblemError`."""
    cursor = call.values.get("cursor")
    if cursor is None:
        return None
    try:
        place = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError):
        place = None
    is_pair = isinstance(place, list) and list(map(type, place)) == [int, str]
    is_page = type(place) is int and 0 <= place < 1 << 31
    if not (is_pair if kind is list else is_page):
        raise ProblemError(
            422, "CURSOR", "'cursor' is not a cursor", "give `next` of the previous page",
            name="cursor", value=cursor[:80],
        )  # fmt: skip
    return place


FILTERS: Final = (
    Field(name="queue", about="of this queue", schema=QUEUE_NAME, coded=CODED_NAME),
    Field(
        name="state", about="in this state", schema=one_of(*filter(None, STATES)),
    ),
    Field(name="task", about="a part of the name of its task", schema=named()),
    Field(name="worker", about="a part of the name of the worker that runs it", schema=named()),
    Field(name="group", about="a part of its GROUP", schema=named()),
    Field(name="key", about="a part of its UNIQUE key", schema=named()),
    Field(name="error", about="a part of its last error", schema=named()),
    Field(name="place", about="where it failed last", schema=named()),
    Field(name="text", about="a part of its body", schema=named()),
    Field(name="older", about="minimum age of the job, in seconds", schema=seconds(0, 999_999_999)),
)  # fmt: skip
"""Filters of jobs, as on the page of jobs. A job must match all that are set."""
_LIMIT: Final = Field(name="limit", about="jobs per page", schema=whole(1, MOST), default=ROWS)
_BODIES: Final = Field(name="bodies", about="show the bodies of its jobs", schema=FLAG)


def _reads(path: str, name: str, about: str, answer: Any, **more: Any) -> Route:
    return Route(method="GET", path=path, name=name, about=about, right=SEE, answer=answer, **more)


ROUTES: Final[Sequence[Route]] = (
    _reads(
        "/overview", "overview", "What is wrong, totals, nodes, and the last minutes.",
        _topic("overview"),
        reply=_answer(
            cluster=TEXT, findings=many(FINDING), now_ms=NUMBER, is_counting=FLAG, uncounted=TEXTS,
            totals=by_name(_NUMBERS), dead_is_least=FLAG, delayed_is_most=FLAG,
            nodes=many(NODE), series=by_name(_POINTS),
        ),
    ),
    _reads(
        "/findings", "findings", "What is wrong, the most severe first, and what to do.",
        _topic("overview", findings="findings"), reply=_answer(findings=many(FINDING)),
    ),
    _reads(
        "/nodes", "nodes", "The nodes, and how each sees the others.", _topic("cluster"),
        reply=_answer(nodes=many(NODE), sees=many(TEXTS)),
    ),
    _reads(
        "/queues", "queues", "A page of the matching queues, in order.", _queues,
        query=(
            Field(name="sort", about="order by this", schema=one_of(*SORTS), default="jobs"),
            Field(name="desc", about="the largest first", schema=FLAG),
            Field(name="match", about="a part of the name, or a pattern", schema=named()),
            Field(
                name="only", about="those in this state", schema=one_of(*filter(None, ONLY)),
            ),
            CURSOR,
        ),
        reply=_answer(total=WHOLE, queues=many(QUEUE_ROW), next=maybe(TEXT), uncounted=TEXTS),
    ),
    _reads(
        "/queues/{queue}", "queue", "One queue, with its oldest, youngest and delayed jobs.",
        _queue, places=(QUEUE,), query=(_BODIES,),
        reply=_answer(
            queue=QUEUE_ROW, uncounted=TEXTS, oldest=many(_LISTED_JOB), youngest=many(_LISTED_JOB),
            delayed=many(_LISTED_JOB), series=by_name(_POINTS),
        ),
    ),
    _reads(
        "/jobs", "jobs",
        "Jobs that match all filters, oldest first; at most 1,000. `is_cut` reports whether there "
        "may be more.",
        _jobs, query=(*FILTERS, _LIMIT, CURSOR),
        reply=_answer(jobs=many(JOB), next=maybe(TEXT), is_cut=FLAG),
    ),
    _reads(
        "/jobs/{id}", "job",
        "One job: its state, its copies, and what it survives; or its outcome.", _job,
        places=(ID,),
        reply=_answer(
            id=TEXT, summary=JOB, copies=many(OBJECT), holders=many(OBJECT), facts=OBJECT,
            explain=TEXTS, result=maybe(_RESULT), **_BODY,
        ),
    ),
    _reads(
        "/jobs/{id}/timeline", "timeline",
        "The events of the job at all nodes, in order of time.",
        _topic("job-timeline"), places=(ID,),
        reply=_answer(id=TEXT, traced=FLAG, why=TEXT, nodes=many(OBJECT), run=maybe(OBJECT)),
    ),
    _reads(
        "/flows", "flows", "The flows that have not ended, latest first.",
        _topic("flows"),
        reply=_answer(flows=many(record(**_FLOW)), is_cut=FLAG, unread=WHOLE),
    ),
    _reads(
        "/flows/{id}", "flow",
        "One flow: its members in order; `after` has the first and the last of those that each "
        "waits for.",
        _flow, places=(ID,),
        reply=_answer(**_FLOW, members=many(_MEMBER), coordinator=maybe(JOB)),
    ),
    _reads(
        "/dead", "dead", "Dead jobs by queue, task, class of error and place.", _topic("dead"),
        query=tuple(each for each in FILTERS if each.name != "state"),
        reply=_answer(total=WHOLE, seen=WHOLE, is_cut=FLAG, groups=many(GROUP), more=WHOLE),
    ),
    _reads(
        "/workers", "workers", "Workers of the task library, and all other clients.",
        _topic("workers"),
        reply=_answer(workers=many(WORKER), clients=many(OBJECT), clients_own=WHOLE,
            clients_total=WHOLE),
    ),
    _reads(
        "/tasks", "tasks", "Run times of tasks, the slowest first, and the jobs that run longest.",
        _topic("tasks"),
        reply=_answer(window_s=NUMBER, tasks=many(TASK), running=many(_RUNNING)),
    ),
    _reads(
        "/schedules", "schedules", "The schedules: those of the code, and those added at run time.",
        _topic("later", schedules="schedules"), reply=_answer(schedules=many(_SCHEDULE)),
    ),
    _reads(
        "/delayed", "delayed", "Delayed jobs, the next one first.",
        _topic("later", jobs="delayed", total="delayed_total"),
        reply=_answer(jobs=many(_DELAYED), total=WHOLE),
    ),
    _reads(
        "/history", "history", "The last hour or day, which nodes keep.", _topic("history"),
        query=(Field(name="span", about="how much", schema=one_of(*SPANS), default="hour"),),
        reply=_answer(period=WHOLE, at=many(NUMBER), marks=many(OBJECT)),
    ),
    _reads(
        "/operations", "operations", "The operations and their arguments.", _operations,
        reply=record(operations=many(OPERATION)),
    ),
)  # fmt: skip
