"""Loading: reads the journal at the start, in portions, so that clients receive LOADING
meanwhile."""

from collections.abc import Callable
from typing import Any, Final

import attrs

from disque_trio.ports import JournalError, JournalFile, JournalStore, Log
from disque_trio.statemachine.records import Record
from disque_trio.storage.tasks import Tasks
from disque_trio.terminal.counting import counted
from disque_trio.wire.journal import DamagedFileError, NewerFileError, Reader

PORTION: Final = 64 << 10
"""How many bytes are read at a time; their jobs take some milliseconds."""
TELL_EVERY_S: Final = 5.0


@attrs.define
class Loading:
    """Progress, in bytes and seconds."""

    tasks: Tasks
    since: int = 0
    """Unix time of the start; 0 while nothing is being loaded."""
    started: float = 0.0
    total: int = 0
    loaded: int = 0

    def begin(self, since: int, total: int) -> None:
        """Begin to load `total` bytes at the Unix time `since`."""
        self.since, self.total, self.loaded = since, total, 0
        self.started = self.tasks.time()

    def shown(self, now: float) -> dict[str, Any]:
        """The progress for INFO, as fields of `JournalVitals`."""
        left = (now - self.started) * (self.total - self.loaded) / max(self.loaded, 1)
        return {
            "loading_since": self.since,
            "loading_bytes": self.total,
            "loaded_bytes": self.loaded,
            "loading_left_s": int(left),
        }


async def load(
    store: JournalStore,
    file: JournalFile,
    loading: Loading,
    take: Callable[[list[Record]], None],
    log: Log,
    *,
    may_cut: bool,
) -> Reader:
    """Read the whole file, and pass its records to `take`.

    With `may_cut`, truncates an incomplete record at the end. Raises JournalError for any other
    damage.
    """
    tasks, reader = loading.tasks, Reader()
    tell_at = tasks.time() + TELL_EVERY_S
    try:
        while portion := await tasks.on(store.thread, file.read, loading.loaded, PORTION):
            loading.loaded += len(portion)
            take(reader.feed(portion))
            if tasks.time() >= tell_at:
                tell_at += TELL_EVERY_S
                percent = 100 * loading.loaded // max(loading.total, 1)
                log.notice("loading the journal", percent=percent, bytes=loading.loaded)
        torn = reader.finish()
    except NewerFileError as error:
        raise JournalError(
            f"{store.name} is newer than this version of disque-trio, and not damaged: {error}. "
            f"{error.advice}; 'disque-trio aof check {store.name}' shows what can be read"
        ) from None
    except DamagedFileError as error:
        raise JournalError(
            f"{store.name} is damaged: {error}. Show the damage with 'disque-trio aof check "
            f"{store.name}'; then {error.advice.replace('FILE', store.name)}"
        ) from None
    except OSError as error:
        raise JournalError(f"cannot read {store.name}: {error.strerror}") from None
    if torn:
        await _cut(tasks, store, file, reader.offset, torn, log, may_cut=may_cut)
    return reader


async def _cut(
    tasks: Tasks,
    store: JournalStore,
    file: JournalFile,
    offset: int,
    torn: int,
    log: Log,
    *,
    may_cut: bool,
) -> None:
    if not may_cut:
        raise JournalError(
            f"{store.name} ends within a record, {counted(torn, 'byte')} after byte {offset}, and "
            f"'aof-load-truncated' is no: 'disque-trio aof repair {store.name}' cuts it there"
        )
    log.warning("the journal ended within a record, which was cut off", at=offset, lost_bytes=torn)
    try:
        await tasks.on(store.thread, file.cut, offset, sync=file.sync)
    except OSError as error:
        raise JournalError(f"cannot cut {store.name}: {error.strerror}") from None


def read_at_once(file: JournalFile) -> list[Record]:
    """All records, read without yielding to other tasks. Raises OSError and DamagedFileError."""
    reader = Reader()
    records: list[Record] = []
    at = 0
    while portion := file.read(at, 16 * PORTION):
        at += len(portion)
        records += reader.feed(portion)
    reader.finish()
    return records
