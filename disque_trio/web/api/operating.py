"""Routes that run operations: one for each row of the table (`observe.operations`)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from disque_trio.observe import bulk
from disque_trio.observe.operations import OPERATIONS
from disque_trio.observe.operations.operation import Argument, Operation
from disque_trio.web.api.problems import ProblemError
from disque_trio.web.api.reading import FILTERS, ID, QUEUE, QUEUE_NAME
from disque_trio.web.api.routes import Call, Reply, Route
from disque_trio.web.api.schemas import (
    BASE64,
    FLAG,
    OBJECT,
    TEXT,
    TEXTS,
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
from disque_trio.web.roles import right_for
from disque_trio.worker.operating.plans import Outcome, Plan


def _runs(operation: Operation) -> Callable[[Any, Call], Awaitable[Reply]]:
    async def answer(api: Any, call: Call) -> Reply:
        plan = await _planned(api, operation, call)
        outcome = Outcome(unasked=list(plan.unasked))
        says = plan.says
        if not call.values.get("plan"):
            _check_sure(operation, plan, call)
            await api.carried_out(call, operation, plan, outcome)
            says = outcome.says
        return Reply(
            {
                "operation": operation.key,
                "target": plan.target,
                "says": says,
                "failed": outcome.failed,
                "unasked": outcome.unasked,
                "count": outcome.count,
                "details": outcome.details,
                "confirm": plan.confirm,
            }
        )

    return answer


def _check_sure(operation: Operation, plan: Plan, call: Call) -> None:
    """As `--yes` of the command line. Raises `ProblemError`."""
    if (operation.is_grave or plan.risk or plan.confirm) and not call.values.get("sure"):
        says = "; ".join([*plan.says, *filter(None, [plan.risk])])
        raise ProblemError(409, "UNSURE", says, 'if that is what you want, give "sure": true')


async def _planned(api: Any, operation: Operation, call: Call) -> Plan:
    args, fits = call.values.get("arguments", {}), call.values.get("filter")
    if fits is None:
        return await operation.planned(api.client, args)
    return await bulk.planned(operation, api.client, await api.ids(fits), args)


def _fields_of(argument: Argument) -> Sequence[Field]:
    if argument.name == ID.name:
        return [ID]
    schema = _schema(argument)
    plain = Field(name=argument.name, about=argument.about, schema=schema)
    if argument.name != "queue" and argument.kind != "body":
        return [plain]
    coded = Field(name=f"{argument.name}_b64", about="the same in base64", schema=BASE64)
    return [plain, coded]


def _schema(argument: Argument) -> Schema:
    if argument.choices:
        return one_of(*argument.choices)
    match argument.kind:
        case "number":
            return whole(int(1 if argument.least is None else argument.least), int(argument.most))
        case "seconds":
            return seconds(0.001 if argument.least is None else argument.least, argument.most)
        case "flag":
            return FLAG
        case "body":
            return TEXT
    return QUEUE_NAME if argument.name == QUEUE.name else named()


_FILTER: Final = Field(
    name="filter",
    about="in place of the id: run it for all jobs that fit, 1,000 at most",
    schema=closed(FILTERS),
)
_MORE: Final = (
    Field(name="plan", about="only report what it would do", schema=FLAG),
    Field(
        name="sure", about="run it even if it cannot be undone, or is for many jobs", schema=FLAG
    ),
)


def _route(operation: Operation) -> Route:
    fields = [each for one in operation.arguments for each in _fields_of(one)]
    arguments = Field(name="arguments", about="by name", schema=closed(fields, is_loose=True))
    fits = (_FILTER,) if operation.family == "jobs" else ()
    return Route(
        method="POST",
        path=f"/operations/{operation.family}/{operation.name}",
        name=f"{operation.family}{operation.name.capitalize()}",
        about=operation.about,
        right=right_for(operation),
        answer=_runs(operation),
        body=(arguments, *fits, *_MORE),
        problems=(409, 422),
        reply=record(
            operation=TEXT, target=TEXT, says=TEXTS, failed=TEXTS, unasked=TEXTS,
            count=WHOLE, details=many(OBJECT), confirm=maybe(TEXT),
        ),
    )  # fmt: skip


ROUTES: Final[Sequence[Route]] = tuple(map(_route, OPERATIONS.values()))
