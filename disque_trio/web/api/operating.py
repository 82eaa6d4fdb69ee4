"""Routes that run operations: one for each entry of the table (`observe.operations`)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from disque_trio.observe import bulk
from disque_trio.observe.operations import OPERATIONS
from disque_trio.observe.operations.operation import Argument, Operation
from disque_trio.observe.values import Json
from disque_trio.web.api.reading import CODED_NAME, FILTERS, ID, QUEUE, QUEUE_NAME
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
    checked,
    closed,
    many,
    maybe,
    named,
    one_of,
    record,
    seconds,
    whole,
)
from disque_trio.web.problems import ProblemError
from disque_trio.web.roles import right_for
from disque_trio.worker.operating.plans import Outcome, Plan


def _runs(operation: Operation, fields: Sequence[Field]) -> Callable[[Any, Call], Awaitable[Reply]]:
    one, several = closed(fields), closed([each for each in fields if each is not ID])

    async def answer(api: Any, call: Call) -> Reply:
        schema = several if "filter" in call.values else one
        args = checked(call.values.get("arguments", {}), schema, "arguments")
        plan = await _planned(api, operation, args, call.values.get("filter"))
        outcome = Outcome(unasked=list(plan.unasked))
        lines = plan.says
        if not call.values.get("plan"):
            _check_sure(operation, plan, call)
            await api.carried_out(call, operation, plan, outcome)
            lines = outcome.says
        return Reply(
            {
                "operation": operation.key,
                "target": plan.target,
                "says": lines,
                "failed": outcome.failed,
                "unasked": outcome.unasked,
                "count": outcome.count,
                "details": outcome.details,
                "confirm": plan.confirm,
            }
        )

    return answer


def _check_sure(operation: Operation, plan: Plan, call: Call) -> None:
    """Raise `ProblemError` if the operation needs confirmation and `sure` is not set, as `--yes` is
    for the command line."""
    if (operation.is_grave or plan.risk or plan.confirm) and not call.values.get("sure"):
        text = "; ".join([*plan.says, *filter(None, [plan.risk])])
        raise ProblemError(409, "UNSURE", text, 'if that is what you want, give "sure": true')


async def _planned(api: Any, operation: Operation, args: Json, fits: Json | None) -> Plan:
    if fits is None:
        return await operation.planned(api.client, args)
    return await bulk.planned(operation, api.client, await api.ids(fits), args)


def _field(argument: Argument) -> Field:
    if argument.name == ID.name:
        return ID
    coded = CODED_NAME if argument.name == QUEUE.name else None
    return Field(
        name=argument.name,
        about=argument.about,
        schema=_schema(argument),
        coded=BASE64 if argument.kind == "body" else coded,
        is_required=argument.is_required,
    )


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
    about="in place of the id: run it for all matching jobs, at most 1,000",
    schema=closed(FILTERS),
)
_ID_OR_FILTER: Final[Schema] = {
    "oneOf": [
        {"required": ["arguments"], "properties": {"arguments": {"required": ["id"]}}},
        {"required": ["filter"]},
    ]
}
_MORE: Final = (
    Field(name="plan", about="only report what it would do", schema=FLAG),
    Field(
        name="sure", about="run it even if it cannot be undone, or is for many jobs", schema=FLAG
    ),
)


def _route(operation: Operation) -> Route:
    fields, is_of_jobs = list(map(_field, operation.arguments)), operation.family == "jobs"
    arguments = Field(
        name="arguments",
        about=f"an object with {', '.join(each.name for each in fields)}",
        schema=closed(fields, is_loose=is_of_jobs),
        is_required=not is_of_jobs and any(each.is_required for each in fields),
    )
    return Route(
        method="POST",
        path=f"/operations/{operation.family}/{operation.name}",
        name=f"{operation.family}{operation.name.capitalize()}",
        about=operation.about,
        right=right_for(operation),
        answer=_runs(operation, fields),
        body=(arguments, *[_FILTER] * is_of_jobs, *_MORE),
        body_rules=(_ID_OR_FILTER,) * is_of_jobs,
        has_conflicts=True,
        reply=record(
            operation=TEXT, target=TEXT, says=TEXTS, failed=TEXTS, unasked=TEXTS,
            count=WHOLE, details=many(OBJECT), confirm=maybe(TEXT),
        ),
    )  # fmt: skip


ROUTES: Final[Sequence[Route]] = tuple(map(_route, OPERATIONS.values()))
