"""The records of schedules: jobs of a reserved queue that are never taken.

A change first adds a record with a higher revision and then ends the previous ones, so a schedule
always exists; of several records with one name, the highest revision applies. Each record has its
own key, by which any node can check whether it still applies. `IFEXISTS replace` does not suffice:
it does not replace a job that a node has enqueued again, for example after a partition.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.statemachine.base import LONGEST_PERIOD_S
from disque_trio.terminal.counting import counted
from disque_trio.terminal.escapes import printable
from disque_trio.worker import codec
from disque_trio.worker.checks import shown
from disque_trio.worker.codec import BAD_INPUT, body_reader
from disque_trio.worker.copies import NO_COPIES, Copies
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.operating.asking import (
    Asking,
    Found,
    InSteps,
    at_each,
    settled,
    unwrap,
)
from disque_trio.worker.operating.key_holders import is_held
from disque_trio.worker.operating.plans import MistakeError
from disque_trio.worker.options import CARRIED, RESERVED, Options, unique_key
from disque_trio.worker.requests import Request
from disque_trio.worker.runtime import runtime
from disque_trio.worker.timetable.remembered import Figures, Remembered, figures_of, remembered

if TYPE_CHECKING:
    from disque_trio.worker.cron.schedule import Schedule

QUEUE: Final = RESERVED + "timetable"
RETRY_S: Final = 10
"""After the loss of the node at which a record is enqueued, another node enqueues it after this
time, in seconds."""
MOST: Final = 10_000
"""The maximum number of schedules of a cluster. Each worker reads all records every few seconds if
any has changed; so does each addition if another client has changed one."""
_READ: Final = 2 * MOST
"""The maximum number of records that are read from one node: a schedule that is being changed has
two."""
_NAMED: Final = 10
"""The maximum number of schedules that an error lists."""
MAX_NAME: Final = 200
"""The maximum length of a name, in bytes."""


class UnknownScheduleError(MistakeError):
    """No schedule has this name."""


class TooManySchedulesError(MistakeError):
    """The cluster has the maximum number of schedules."""


@attrs.frozen(kw_only=True)
class Entry:
    """The record of a schedule that was added at run time."""

    name: str
    task: str
    cron: str = ""
    """Five fields of cron, or a nickname such as `@daily`; empty with `every`."""
    every: int | None = None
    """The interval in seconds; None with `cron`."""
    tz: str = "UTC"
    missed: str = "skip"
    within: int | None = None
    partition: int | None = None
    args: list[Any] = attrs.Factory(list)
    kwargs: dict[str, Any] = attrs.Factory(dict)
    options: dict[str, Any] = attrs.Factory(dict)
    """The options of the jobs that are not defaults."""
    is_told: bool = False
    """Does the task have the argument `scheduled`, the instant of the tick?"""
    is_paused: bool = False
    since: int = 0
    """Unix seconds: ticks up to this time are not due. It is the time at which the schedule was
    added, changed its rule, or was resumed."""
    revision: int = 0
    """Increases with each change: Unix time in milliseconds, if clocks are correct."""

    @property
    def key(self) -> str:
        """The key of the job that contains this record."""
        return f"{self.revision:x}/{self.name}"

    @property
    def when(self) -> str:
        """The rule as readable text. Raises as `schedule`."""
        return self.schedule().ticks.words

    @property
    def queue(self) -> str:
        """The queue of its jobs."""
        return str(self.options.get("queue", Options().queue))

    def schedule(self) -> "Schedule":
        """The schedule. Raises `ValueError` and `TypeError` for an invalid record."""
        declaring = import_module("disque_trio.worker.cron.declaring")  # calendars, time zones
        values = {"missed": self.missed, "within": self.within, "partition": self.partition}
        options = {name: each for name, each in values.items() if each is not None}
        ticks = declaring.ticks_of(self.cron or None, self.every, self.tz)
        found: Schedule = import_module("disque_trio.worker.cron.schedule").Schedule(
            name=self.name, ticks=ticks, **options
        )
        return found

    def next(self, now: float) -> int | None:
        """The next tick, in Unix seconds; None while it is paused."""
        after = max(int(now), self.since)
        return None if self.is_paused else next(self.schedule().ticks.after(after), None)

    def request(self, enqueuer: Enqueuer, tick: int, *, is_tick: bool = True) -> Request[Any]:
        """The ADDJOB of a tick, with a unique key. Without `is_tick`: of an additional run, without
        a key, whose result may be awaited. Raises `ValueError` for an invalid record, and errors of
        hooks."""
        declaring: Any = import_module("disque_trio.worker.cron.declaring")
        extra = declaring.instant(tick) if self.is_told else {}
        form = enqueuer.form
        packed = (
            [codec.part(each, form) for each in self.args],
            {name: codec.part(each, form) for name, each in {**self.kwargs, **extra}.items()},
        )
        options = Options(**self.options)
        adding = enqueuer.adding(self.task, options, runtime().new_key())
        headers = {name: each for name, each in self.options.items() if name in CARRIED}
        headers = {**adding.headers, **headers}
        wait = follow = None
        if is_tick:
            text = import_module("disque_trio.worker.cron.ticks").text(tick)
            key = f"schedule/{self.name}/{text}"
            headers |= {"unique": unique_key(self.task, key, b""), "keep": self.schedule().keep}
        if options.result_ttl is not None and is_tick:
            headers |= enqueuer.kept(options.result_ttl)
        elif options.result_ttl is not None:
            read = enqueuer.reader(self.task)
            asked, wait, follow = enqueuer.awaited_by(read, options.result_ttl, adding.key)
            headers |= asked
        found = enqueuer.packed(self.task, adding.key, packed, options, form, headers)
        return attrs.evolve(found, wait=wait, follow=follow)


read: Final = body_reader(Entry)
"""Decodes a record. Raises one of `codec.BAD_INPUT`."""


ByName = Mapping[str, Sequence[Entry]]
"""Records by name; of several with one name the last one applies."""


@attrs.frozen
class Timetable:
    """The schedules of a cluster. Its methods raise errors of the client."""

    client: Asking
    copies: Copies = NO_COPIES

    async def all(self, *, searches: bool = True) -> Found[Entry]:
        """All schedules, by name. If a node does not answer, the others search all their jobs for
        replicas of its records. Without `searches` they do not; another node then shows the records
        `RETRY_S` later."""
        records, unreached = await self._records(searches=searches)
        return Found([records[name][-1] for name in sorted(records)], unreached)

    async def _records(self, *, searches: bool = True) -> tuple[ByName, dict[str, str]]:
        """All records, and by node that has not answered, the error."""
        figures = await self._figures()
        known = None if figures is None else self._remembered.records(figures)
        if known is not None:
            return known, {}
        found = await self._read(searches=searches)
        records = _by_name(found.items)
        if figures is not None and not found.unreached:
            self._remembered.learn(figures, records)
        return records, found.unreached

    @property
    def _remembered(self) -> Remembered[Any]:
        return remembered(self.client.client if isinstance(self.client, InSteps) else self.client)

    async def _figures(self) -> Figures | None:
        """The counts of records by node; None if a node does not answer."""

        async def ask(node: Address) -> list[tuple[str, tuple[int, int]]]:
            (answer,) = await self.client.ask(node, [commands.qstat(QUEUE)])
            return [(str(node), figures_of(unwrap(answer)))]

        found = await at_each(self.client, ask)
        return None if found.unreached else dict(found.items)

    @asynccontextmanager
    async def _changing(self) -> AsyncIterator[None]:
        """Allow one change of this client at a time."""
        if isinstance(self.client, InSteps):
            yield
            return
        async with self._remembered.changing:
            yield

    async def _read(self, *, searches: bool) -> Found[Entry]:
        async def ask(node: Address) -> list[Entry]:
            (answer,) = await self.client.ask(node, [commands.qpeek(QUEUE, _READ)])
            return [entry for job in unwrap(answer) for entry in _entries(job.body)]

        found = await at_each(self.client, ask)
        if not found.unreached or not searches:
            return found
        replicas = (await at_each(self.client, self._replicas)).items
        once = {each.key: each for each in (*found.items, *replicas)}
        return Found(list(once.values()), found.unreached)

    async def _replicas(self, node: Address) -> list[Entry]:
        """The replicas on this node of records that are enqueued at another one."""
        found: list[Entry] = []
        cursor = 0
        while len(found) < _READ:
            asked = commands.jscan(cursor, queue=QUEUE, states=("active",))
            page = unwrap(*await self.client.ask(node, [asked]))
            found += [entry for job in page.items for entry in _entries(job.body or b"")]
            cursor = page.cursor
            if not cursor:
                break
        return found

    async def find(self, name: str) -> Entry | None:
        """The schedule with this name; None if no node that answers has one."""
        return next((each for each in (await self.all()).items if each.name == name), None)

    async def get(self, name: str) -> Entry:
        """The schedule with this name. Raises `UnknownScheduleError`."""
        return (await self._of(name))[-1]

    async def _of(self, name: str) -> Sequence[Entry]:
        """The records with this name; the last one applies. Raises `UnknownScheduleError`."""
        check_name(name)
        found, unreached = await self._records()
        if name in found:
            return found[name]
        names = ", ".join(printable(each) for each in islice(sorted(found), _NAMED)) or "none"
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise UnknownScheduleError(
            f"no schedule has the name {printable(name)}; there are {names}{more}"
            + (f"; no answer from {', '.join(unreached)}" if unreached else "")
        )

    async def counts(self, entry: Entry) -> bool:
        """Does this record still exist?"""
        return await is_held(self.client, (QUEUE, entry.key))

    async def put(self, entry: Entry, before: Sequence[Entry]) -> None:
        """Add this record, and end the previous ones with its name."""
        now_ms = int(runtime().now() * 1000)
        revision = max([now_ms, *(each.revision + 1 for each in before)])
        entry = attrs.evolve(entry, revision=revision)
        asked = commands.addjob(
            QUEUE,
            codec.write(entry, "json"),
            retry=RETRY_S,
            ttl=LONGEST_PERIOD_S,
            unique=entry.key,
            replicate=self.copies.replicate,
            sync=self.copies.awaited,
        )
        await settled(self.client, asked)
        await self._end(before)
        self._remembered.change(entry.name, before, [entry])

    async def _end(self, records: Sequence[Entry]) -> None:
        for each in records:
            await settled(self.client, commands.cancel_key(QUEUE, each.key))

    async def add(self, entry: Entry) -> None:
        """Add the schedule, or replace the one with its name: it stays paused, and keeps its due
        times if the rule is the same. Raises `ValueError` and `TypeError` for an invalid schedule,
        and `TooManySchedulesError`."""
        check(entry)
        async with self._changing():
            await self._add(entry)

    async def _add(self, entry: Entry) -> None:
        known, _ = await self._records()
        before = known.get(entry.name, [])
        if not before and len(known) >= MOST:
            raise TooManySchedulesError(
                f"there are {counted(len(known), 'schedule')}, and the limit is {MOST}: remove "
                "some, or let one add the jobs of several"
            )
        since = int(runtime().now())
        for last in before[-1:]:
            entry = attrs.evolve(entry, is_paused=last.is_paused)
            since = last.since if last.when == entry.when else since
        await self.put(attrs.evolve(entry, since=since), before)

    async def pause(self, name: str) -> bool:
        """Pause the schedule. Returns False if it was already paused. Raises
        `UnknownScheduleError`."""
        async with self._changing():
            before = await self._of(name)
            entry = before[-1]
            if not entry.is_paused:
                await self.put(attrs.evolve(entry, is_paused=True), before)
            return not entry.is_paused

    async def resume(self, name: str) -> bool:
        """Resume the schedule from now on. Returns False if it was not paused. Raises
        `UnknownScheduleError`."""
        async with self._changing():
            before = await self._of(name)
            entry = before[-1]
            if entry.is_paused:
                since = int(runtime().now())
                await self.put(attrs.evolve(entry, is_paused=False, since=since), before)
            return entry.is_paused

    async def remove(self, name: str) -> bool:
        """Remove the schedule. Returns False if there is none."""
        check_name(name)
        async with self._changing():
            records, _ = await self._records()
            before = records.get(name, [])
            await self._end(before)
            self._remembered.change(name, before, [])
            return bool(before)


def check(entry: Entry) -> None:
    """Raise `ValueError` or `TypeError` for an invalid schedule."""
    check_name(entry.name)
    try:
        size = len(entry.name.encode())
    except UnicodeEncodeError as error:
        raise ValueError(f"the name of a schedule is text: {error}") from error
    if not 0 < size <= MAX_NAME:
        raise ValueError(f"the name of a schedule has 1 to {MAX_NAME} bytes, not {size}")
    if not entry.task:
        raise ValueError(f"schedule {entry.name}: give the name of a task")
    try:
        entry.schedule()
        Options(**entry.options)
    except ValueError as error:
        raise ValueError(f"schedule {entry.name}: {error}") from error


def check_name(name: object) -> None:
    """Raise `ValueError` if the name is not text."""
    if not isinstance(name, str):
        raise ValueError(f"the name of a schedule is text, not {shown(name)}")


def _by_name(records: Iterable[Entry]) -> ByName:
    """The records by name, in the order of their revisions."""
    found: dict[str, list[Entry]] = {}
    for each in sorted(records, key=lambda one: (one.name, one.revision)):
        found.setdefault(each.name, []).append(each)
    return found


def _entries(body: bytes | None) -> Sequence[Entry]:
    try:
        return [read(body or b"")]
    except BAD_INPUT:  # of another version
        return []
