"""The route of the audit log."""

from collections.abc import Sequence
from typing import Any, Final

from disque_trio.observe.operations import OPERATIONS
from disque_trio.web.api.reading import CURSOR, opened, sealed
from disque_trio.web.api.routes import Call, Reply, Route
from disque_trio.web.api.schemas import (
    FLAG,
    TEXT,
    WHOLE,
    Field,
    many,
    maybe,
    named,
    one_of,
    record,
    whole,
)
from disque_trio.web.audit import KEPT
from disque_trio.web.roles import MANAGE

ENTRY: Final = record(
    number=WHOLE, at_ms=WHOLE, user=TEXT, role=TEXT, address=TEXT, by=TEXT, operation=TEXT,
    target=TEXT, outcome=TEXT, is_ok=FLAG,
)  # fmt: skip


async def _audit(api: Any, call: Call) -> Reply:
    wanted = {name: call.values[name] for name in ("user", "operation") if name in call.values}
    found, has_more = api.audit.find(
        opened(call, int),
        call.values["limit"],
        lambda entry: all(entry[name] == value for name, value in wanted.items()),
    )
    following = sealed(found[-1]["number"]) if has_more and found else None
    return Reply({"entries": found, "next": following})


ROUTES: Final[Sequence[Route]] = (
    Route(
        method="GET", path="/audit", name="audit", right=MANAGE, answer=_audit,
        about="Operations that this node or console has run for somebody, the latest first; the "
        "last 1,000.",
        query=(
            Field(name="user", about="of this user", schema=named()),
            Field(name="operation", about="of this kind", schema=one_of(*OPERATIONS)),
            Field(name="limit", about="entries of a page", schema=whole(1, KEPT), default=100),
            CURSOR,
        ),
        reply=record(entries=many(ENTRY), next=maybe(TEXT)),
    ),
)  # fmt: skip
