"""The common parts of all families: the cluster, errors, and nodes that do not answer."""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import anyio
import attrs

from disque_trio.cli.frame import FAILED, JOB_ID, PARTIAL, NotDoneError, json_switch
from disque_trio.cli.options import password_of_environment
from disque_trio.client import Client
from disque_trio.client.errors import DisqueError
from disque_trio.client.settings import DEFAULT_URL
from disque_trio.client.url import parse_url
from disque_trio.observe.client import DeadlineClient
from disque_trio.observe.cluster import label_of
from disque_trio.observe.operations import OPERATIONS, fields_of
from disque_trio.observe.operations.members import names_of
from disque_trio.observe.operations.operation import Argument, Operation, each_once
from disque_trio.terminal.escapes import printable
from disque_trio.terminal.options import (
    COUNT,
    URL,
    Command,
    Kind,
    UsageError,
    argument,
    one_of,
    option,
    seconds,
    switch,
    text,
    whole,
)
from disque_trio.terminal.output import complain, say_json, say_lines
from disque_trio.worker.operating.admin import Admin
from disque_trio.worker.operating.asking import Found
from disque_trio.worker.operating.plans import MistakeError, Outcome

EPILOG: Final = """\
--url or $DISQUE_URL names nodes: disque://:password@host:port,host:port (DEFAULT). The command
queries all nodes of their cluster. The password may also be in $DISQUE_AUTH, or in the file
$DISQUE_AUTH_FILE.

exit status:
  0    success
  1    the name is unknown, a node refuses the operation, or no node answers
  2    wrong usage
  3    some nodes did not answer; the output or the operation excludes them
  130  interrupted by Ctrl-C
  143  terminated by SIGTERM
""".replace("DEFAULT", DEFAULT_URL)


_ANSWER_S: Final = 3.0
"""A node that takes longer is not waited for, and reported."""


def cluster_url() -> Any:
    """The option `--url`."""
    return option(
        "--url", URL, "nodes of the cluster", DEFAULT_URL, "$DISQUE_URL",
        variable="DISQUE_URL", replaces=("-p", "--port", "--host"),
    )  # fmt: skip


def client_of(url: str, answer_s: float | None = None) -> DeadlineClient:
    """A client of the cluster, which waits for a silent node only once. Raises `UsageError`."""
    try:
        cluster = parse_url(url)
        password = cluster.password or password_of_environment()
        cluster = attrs.evolve(cluster, password=password)
        return DeadlineClient(cluster, answer_s=_ANSWER_S if answer_s is None else answer_s)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error


@attrs.frozen(kw_only=True)
class Options:
    """What each of these commands has."""

    url: str = cluster_url()
    is_json: bool = json_switch()

    @property
    def subject(self) -> str:
        """Which cluster is asked, without a password."""
        return self.url.rpartition("@")[2]


Some = TypeVar("Some", bound=Options)


def operation(
    about: str,
    carry_out: Callable[[Admin, Some], Coroutine[Any, Any, int]],
    record: type[Some],
) -> Command[Some]:
    """A command of a family. `carry_out` gives the exit status, and raises `NotDoneError`."""

    def run(options: Some) -> int:
        client = client_of(options.url)

        async def carried_out() -> int:
            async with client:
                return await carry_out(Admin(client), options)

        try:
            return anyio.run(carried_out)
        except MistakeError as error:
            raise NotDoneError(str(error)) from error

    return Command(record=record, run=run, about=about)


def operations(family: str) -> dict[str, Command[Any]]:
    """The commands that change something, out of the table of operations."""
    return {
        each.name: operation(each.about, partial(_operate, each), _record_of(each))
        for each in OPERATIONS.values()
        if each.family == family
    }


def _record_of(each: Operation) -> type[Any]:
    fields = {one.name: _field_of(one) for one in each.arguments}
    fields["is_plan"] = switch("--plan", "only print what the operation would do")
    fields["is_sure"] = switch("--yes", "run the operation even if it cannot be undone")
    return attrs.make_class(each.key, fields, bases=(Options,), kw_only=True, frozen=True)


def _field_of(each: Argument) -> Any:
    kind = _kind_of(each)
    kind = one_of(*each.choices) if each.choices else kind
    if each.name == "id":
        return argument(JOB_ID, each.about, "+")
    if each.is_required:
        return argument(kind, each.about)
    if each.is_placed:
        return argument(kind, each.about, "?", each.default)
    name = f"--{each.name.removeprefix('is_').replace('_', '-')}"
    if each.kind == "flag":
        return switch(name, each.about)
    return option(name, kind, each.about, each.default)


def _kind_of(each: Argument) -> Kind:
    least, most = each.least, each.most
    if each.kind == "seconds":
        return seconds(0.001, 3600) if least is None else seconds(least, most)
    if each.kind == "number":
        return COUNT if least is None else whole(int(least), int(most))
    return text(each.name.upper())


async def _operate(each: Operation, admin: Admin, options: Any) -> int:
    values = {one.name: getattr(options, one.name) for one in each.arguments}
    several = [{"id": id} for id in values.pop("id", ())] or [{}]
    outcome, plans = Outcome(), []
    for one in several:
        with _noted(outcome, is_one=len(several) == 1):
            plans.append(await each.planned(admin.client, fields_of({**values, **one})))
    for plan in plans:
        if (each.is_grave or plan.risk) and not (options.is_sure or options.is_plan):
            text = "; ".join(map(printable, plan.says))
            raise UsageError(f"{text}. To confirm, give --yes")
    for plan in plans:
        outcome.unasked[:] = each_once([*outcome.unasked, *plan.unasked])
        if options.is_plan:
            outcome.says.extend(plan.says)
        else:
            with _noted(outcome, is_one=len(several) == 1):
                await plan.run(outcome, lambda _: None)
    _report(each, outcome, is_json=options.is_json)
    if outcome.failed:
        return FAILED
    return PARTIAL if outcome.unasked else 0


@contextmanager
def _noted(outcome: Outcome, *, is_one: bool) -> Iterator[None]:
    """Of one of several jobs, an error ends nothing but the operation on that job."""
    try:
        yield
    except (MistakeError, DisqueError) as error:
        if is_one:
            raise
        outcome.failed.append(str(error))


def _report(each: Operation, outcome: Outcome, *, is_json: bool) -> None:
    if is_json:
        say_json(attrs.asdict(outcome))
        return
    if outcome.says:
        say_lines("\n".join(outcome.says))
    for line in outcome.failed + outcome.unasked:
        if line not in outcome.says:
            complain(f"disque-trio {each.key}: {line}")


async def warn_of(client: Client, name: str, unreached: Mapping[str, str]) -> int:
    """Which nodes did not answer. The exit status."""
    names = await names_of(client) if unreached else str
    for node, why in unreached.items():
        label = label_of(names(node), node)
        complain(f"disque-trio {name}: the data of {label} is missing: {why}")
    return PARTIAL if unreached else 0


def warn_of_more(name: str, found: Found[Any]) -> None:
    """Are there more than the limit?"""
    if found.is_cut:
        complain(f"disque-trio {name}: the list may be incomplete: raise --limit")
