"""Chores that run synchronously: write files, raise limits, read figures of the process."""

from collections.abc import Iterator, Mapping

from disque_trio.driver.history import History
from disque_trio.driver.sessions import Session
from disque_trio.ports import Host
from disque_trio.statemachine.base import ClientId
from disque_trio.statemachine.chores import (
    ChangeDirectory,
    Connection,
    JournalChore,
    RaiseFileLimit,
    ReadJournal,
    ReadVitals,
    ReloadTls,
    RewriteConfig,
    Vitals,
)
from disque_trio.statemachine.state import NodeState
from disque_trio.storage.journal import Journal

InstantChore = (
    RewriteConfig | ReloadTls | ChangeDirectory | RaiseFileLimit | ReadVitals
    | JournalChore
)  # fmt: skip


class ChoreRunner:
    """Runs the chores of one node."""

    def __init__(
        self,
        state: NodeState,
        sessions: Mapping[ClientId, Session],
        host: Host,
        journal: Journal | None,
    ) -> None:
        self._state = state
        self.history = History(state)
        self._sessions = sessions
        self._host = host
        self._journal = journal

    def run(self, chore: InstantChore) -> object:
        """Carry out a chore. The outcome is described in the chore's class."""
        match chore:
            case RewriteConfig():
                return self._host.rewrite_config(self._state.config)
            case ChangeDirectory():
                return self._host.change_directory(chore.path)
            case RaiseFileLimit():
                return self._host.raise_file_limit(chore.clients)
            case ReloadTls():
                return self._host.reload_tls(chore.config)
            case ReadVitals():
                return self._vitals()
            case _:
                return self._of_journal(chore)

    def _of_journal(self, chore: JournalChore) -> object:
        journal = self._journal
        if journal is None:
            return "This node has no place for an append only file"
        match chore:
            case ReadJournal():
                return journal.read_at_once()
            case _:
                journal.stop()
                return None

    def process_vitals(self) -> Vitals:
        """Figures of the process and the journal, without connections."""
        vitals = self._host.vitals()
        if self._journal is not None:
            vitals.journal = self._journal.vitals()
        return vitals

    def _vitals(self) -> Vitals:
        vitals = self.process_vitals()
        vitals.history = self.history.fields
        vitals.standstill, vitals.standstill_ago = self.history.standstill(self._state.mono)
        vitals.connection_of, vitals.busy_connections = self._connection_of, self._busy
        return vitals

    def _connection_of(self, client: ClientId) -> Connection:
        session = self._sessions.get(client)
        return Connection() if session is None else _facts(session)

    def _busy(self) -> Iterator[Connection]:
        for session in self._sessions.values():
            if session.in_socket or session.parser.buffered:
                yield _facts(session)


def _facts(session: Session) -> Connection:
    facts = session.port.facts()
    facts.input_bytes = session.parser.buffered
    facts.input_free = session.parser.spare
    return facts
