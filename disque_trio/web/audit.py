"""The audit log: who has run which operation, from which address, and its outcome.

Each operation is written to the node's log and kept here among the last `KEPT` entries. With
`web-audit-file` it is also a line of JSON in that file, from which a new process reads the entries.
A thread writes the file, so that a blocked disk blocks no request.
"""

import json
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from disque_trio.observe.values import Json, encoded
from disque_trio.statemachine.config import Config
from disque_trio.web.roles import User
from disque_trio.worker.operating.plans import Outcome, Plan

KEPT: Final = 1000
"""The maximum number of entries that can be read."""
MOST: Final = 4 << 20
"""The maximum size of the file. After it, the file is renamed to `FILE.1` and replaces the previous
one."""
_OUTCOME: Final = 1000
"""The maximum length of an outcome, which may contain stacks of workers."""
_UNWRITTEN: Final = 10_000
FIELDS: Final = (
    "at_ms", "user", "role", "address", "by", "operation", "target", "outcome", "is_ok",
)  # fmt: skip


@attrs.define(eq=False)
class Audit:
    """The audit log of one web port. The file is written while `run` runs."""

    config: Callable[[], Config]
    log: Callable[[str, Json], None]
    """Logs an event with its fields."""
    warn: Callable[[str], None]
    clock: Callable[[], float] = time.time
    """Returns Unix seconds."""
    entries: deque[Json] = attrs.field(factory=lambda: deque(maxlen=KEPT))
    """The latest is last. `number` is the number of the entry."""
    _count: int = 0
    _unwritten: deque[str] = attrs.field(factory=lambda: deque(maxlen=_UNWRITTEN))
    _wake: trio.Event = attrs.Factory(trio.Event)
    _has_failed: bool = False

    def note(
        self, user: User, address: str, by: str, operation: str, plan: Plan, outcome: Outcome,
        *, is_stopped: bool,
    ) -> None:  # fmt: skip
        """Add an operation that has ended or was stopped. `by` is `console` or `http`."""
        text = "; ".join([*outcome.says, *outcome.failed, *outcome.unasked]) or "nothing"
        facts: Json = {
            "user": user.name,
            "role": user.role,
            "address": address,
            "by": by,
            "operation": operation,
            "target": plan.target,
            "outcome": text[:_OUTCOME],
        }
        self.log("console action", {**facts, "stopped": is_stopped})
        is_ok = not (outcome.failed or outcome.unasked or is_stopped)
        facts |= {"at_ms": round(self.clock() * 1000), "is_ok": is_ok}
        self._add(facts)
        if self._path is not None:
            self._unwritten.append(encoded(facts))
            self._wake.set()

    def _add(self, facts: Json) -> None:
        self._count += 1
        self.entries.append({"number": self._count, **facts})

    @property
    def _path(self) -> Path | None:
        name = self.config().web_audit_file
        return Path(name) if name else None

    async def run(self) -> None:
        """Read the file, and write new entries to it, until cancelled."""
        if self._path is not None:
            late = list(self.entries)
            self.entries.clear()
            for each in await trio.to_thread.run_sync(read, self._path):
                self._add(each)
            for each in late:
                self._add({name: each[name] for name in FIELDS})
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            await self._write()

    async def _write(self) -> None:
        lines, path = list(self._unwritten), self._path
        if path is None or not lines:
            return
        self._unwritten.clear()
        try:
            await trio.to_thread.run_sync(append, path, lines, abandon_on_cancel=True)
            self._has_failed = False
        except OSError as error:
            if not self._has_failed:
                self.warn(f"the audit log cannot be written: {path}: {error.strerror}")
            self._has_failed = True
            self._unwritten.extendleft(reversed(lines))  # the next write tries them again

    async def close(self) -> None:
        """Write the remaining entries."""
        with trio.move_on_after(1.0, shield=True):
            await self._write()

    def find(
        self, before: int | None, limit: int, fits: Callable[[Json], bool]
    ) -> tuple[list[Json], bool]:
        """Return entries before this number, the latest first, and whether there are more."""
        found = [
            each
            for each in reversed(self.entries)
            if (before is None or each["number"] < before) and fits(each)
        ]
        return found[:limit], len(found) > limit


def append(path: Path, lines: Sequence[str]) -> None:
    """Append lines to the file, which only its owner can read. Raise `OSError`."""
    data = "".join(f"{line}\n" for line in lines).encode()
    if path.exists() and path.stat().st_size + len(data) > MOST:
        path.replace(path.with_name(f"{path.name}.1"))
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as file:
        file.write(data)


def read(path: Path) -> list[Json]:
    """Return the last entries of the file and of the previous one. Invalid lines are skipped."""
    found: deque[Json] = deque(maxlen=KEPT)
    for each in (path.with_name(f"{path.name}.1"), path):
        try:
            lines = each.read_bytes().splitlines()
        except OSError:
            continue
        found.extend(entry for line in lines[-KEPT:] if (entry := _entry(line)))
    return list(found)


def _entry(line: bytes) -> Json | None:
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or set(found) != set(FIELDS):
        return None
    is_well = all(
        isinstance(value, {"at_ms": int, "is_ok": bool}.get(name, str))
        for name, value in found.items()
    )
    return found if is_well else None
