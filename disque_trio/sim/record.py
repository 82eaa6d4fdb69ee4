"""Writing down what happens: rows for whoever watches, and one digest over all of them.

The digest tells whether two runs were the same. It is SHA-256 over the rows as `marshal` writes
them in version 2, which knows no references and so depends on nothing but the values; of the forms
tried (JSON, joined text) it is the only one that costs less than building the row.
"""

import hashlib
import marshal
from collections.abc import Callable, Iterable
from typing import Final

import attrs

from disque_trio.sim.plan import Micros
from disque_trio.sim.rows import Row

Fields = tuple[Micros, str, str, str, str, str, str, str, str, int, int, int, tuple[int, ...]]
"""A row as a tuple, in the order of `Row`."""

_BATCH: Final = 256
_FORM: Final = 2
MESSAGE_KINDS: Final = ("send", "recv")


class Recorder:
    """Takes rows in order."""

    __slots__ = ("_hash", "_hidden", "_observer", "_pending", "_triggers", "last")

    def __init__(self, observer: Callable[[Row], None] | None, *, messages: bool = True) -> None:
        self._observer = observer
        self._hash = hashlib.sha256()
        self._pending: list[Fields] = []
        self._hidden: tuple[str, ...] = () if messages else MESSAGE_KINDS
        self._triggers: dict[str, Callable[[Fields], None]] = {}
        self.last: Micros = 0

    def watch(self, kind: str, then: Callable[[Fields], None]) -> None:
        """Call `then` with each row of this kind, too."""
        self._triggers[kind] = then

    def add(self, fields: Fields) -> None:
        """One more row."""
        pending = self._pending
        pending.append(fields)
        if len(pending) == _BATCH:
            self._hash.update(marshal.dumps(pending, _FORM))
            pending.clear()
        observer, triggers = self._observer, self._triggers
        if observer is not None and (not self._hidden or fields[1] not in self._hidden):
            observer(Row(*fields))
        if triggers and fields[1] in triggers:
            triggers[fields[1]](fields)

    def digest(self) -> str:
        """Of everything so far."""
        whole = self._hash.copy()
        whole.update(marshal.dumps(self._pending, _FORM))
        return whole.hexdigest()


def digest_of(rows: Iterable[Row]) -> str:
    """What a `Recorder` says after these rows."""
    recorder = Recorder(None)
    for row in rows:
        recorder.add(attrs.astuple(row, recurse=False))
    return recorder.digest()
