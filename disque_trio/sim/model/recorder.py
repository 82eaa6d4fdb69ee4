"""Records rows for an observer, and computes one digest of all of them.

Equal runs have equal digests. The digest is SHA-256 of the rows as `marshal` writes them in version
2, which has no references and so depends on values only. Of the forms tried (JSON, joined text), it
is the only one that costs less than building the row.
"""

import hashlib
import marshal
from collections.abc import Callable, Iterable
from typing import Final

import attrs

from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row

Fields = tuple[Micros, str, str, str, str, str, str, str, str, int, int, int, tuple[int, ...]]
"""A row as a tuple, in the order of `Row`."""

_BATCH: Final = 256
_FORM: Final = 2
MESSAGE_KINDS: Final = ("send", "recv")


class Recorder:
    """Takes rows in order.

    The observer receives each row at once, or, after `keep_back`, in batches by `flush`. There are
    about two rows for each event, and a call for each would be a large part of the time of a run.
    """

    __slots__ = (
        "_hash",
        "_hidden",
        "_is_keeping",
        "_observed",
        "_observer",
        "_pending",
        "_triggers",
        "add",
    )

    add: Callable[[Fields], None]
    """Add a row."""

    def __init__(self, observer: Callable[[Row], None] | None, *, messages: bool = True) -> None:
        self._observer = observer
        self._hash = hashlib.sha256()
        self._pending: list[Fields] = []
        """Rows that are not in the digest yet."""
        self._observed = 0
        """The number of these that the observer has received."""
        self._hidden: tuple[str, ...] = () if messages else MESSAGE_KINDS
        self._triggers: dict[str, Callable[[Fields], None]] = {}
        self._is_keeping = False
        self.add = self._add

    def keep_back(self) -> None:
        """From now on the observer receives rows only by `flush`."""
        self._is_keeping = True
        if not self._triggers:
            self.add = self._pending.append

    def watch(self, kind: str, then: Callable[[Fields], None]) -> None:
        """Call `then` with each row of this kind, always at once."""
        self._triggers[kind] = then
        self.add = self._add

    def _add(self, fields: Fields) -> None:
        self._pending.append(fields)
        if not self._is_keeping:
            self.flush()
        if fields[1] in self._triggers:
            self._triggers[fields[1]](fields)

    def flush(self) -> None:
        """Pass new rows to the observer, and complete batches to the digest."""
        pending, observer, hidden = self._pending, self._observer, self._hidden
        fresh, self._observed = pending[self._observed :], len(pending)
        if observer is not None:
            for fields in fresh:
                if fields[1] not in hidden:
                    observer(Row(*fields))
        whole = len(pending) - len(pending) % _BATCH
        for start in range(0, whole, _BATCH):
            self._hash.update(marshal.dumps(pending[start : start + _BATCH], _FORM))
        del pending[:whole]
        self._observed = len(pending)

    def digest(self) -> str:
        """Return the digest of all rows so far."""
        self.flush()
        whole = self._hash.copy()
        whole.update(marshal.dumps(self._pending, _FORM))
        return whole.hexdigest()


def digest_of(rows: Iterable[Row]) -> str:
    """Return the digest of these rows."""
    recorder = Recorder(None)
    for row in rows:
        recorder.add(attrs.astuple(row, recurse=False))
    return recorder.digest()
