"""A scope defines what is explored, and how far. `scopes/` contains the shipped ones."""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from disque_trio.statemachine.base import JobId, Millis
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.job import make_id
from disque_trio.terminal.counting import counted

SHIPPED: Final = Path(__file__).parent / "scopes"
NAMES: Final = "abcd"
"""The names of the nodes."""
FAULTS: Final = {
    "crash": "the node loses its memory, keeps its disk, and may start again",
    "lose": "the node is gone for good",
    "cut": "the links between two nodes break, and come up again when that is undone",
    "break": "the link from one node to another breaks, with all that is under way on it",
    "drop": "the next message from one node to another is lost",
    "leave": "a client disconnects",
}
"""By kind of fault: its description."""
_DAY_S: Final = 86_400
_SPREAD: Final = 0x9E3779B97F4A7C15F39CC0605CEDC834
_FOREVER: Final[Millis] = 1 << 40


class ScopeError(ValueError):
    """The scope cannot be explored; the text says why."""


@attrs.frozen(kw_only=True)
class Job:
    """A job of a scope, with the options of its ADDJOB."""

    name: str
    node: int
    number: int
    replicate: int
    retry_s: int
    key: str = ""

    @property
    def bits(self) -> int:
        """The random part of its id. The last byte determines the order of the creation stamps."""
        spread = _SPREAD * (self.number + 1) & ((1 << 136) - 1)
        return spread << 8 | self.number

    def id_at(self, node: bytes) -> JobId:
        """Return the id of the job if this node adds it."""
        return make_id(node, self.bits, _DAY_S, at_least_once=self.retry_s > 0)


@attrs.frozen(kw_only=True)
class Client:
    """A connection to a node, and the requests that it sends in order. In their words, `$name` is
    the id of the job with that body, and `$got` that of the last job it received."""

    node: int
    does: tuple[tuple[str, ...], ...]


@attrs.frozen(kw_only=True)
class Fault:
    """A fault that may happen once, at any time."""

    kind: str
    where: tuple[int, ...]
    """The nodes of the fault; for `leave` the number of the client."""


@attrs.frozen(kw_only=True)
class Scope:
    """One scope."""

    name: str
    about: str
    nodes: int
    clients: tuple[Client, ...]
    before: tuple[tuple[str, ...], ...] = ()
    """Requests to the first node, whose effects all nodes know before the clients start."""
    jobs: tuple[Job, ...] = ()
    most_taken: int = 0
    """The most deliveries of all jobs together to clients; 0 is unlimited."""
    faults: tuple[Fault, ...] = ()
    most_faults: int = 1
    exchangeable: tuple[int, ...] = ()
    """Nodes that differ only in their names."""
    journal: bool = True
    """Do nodes keep a journal, to which every write is synced at once?"""
    timeout_s: int = 0
    """`cluster-node-timeout`; 0: no node is ever suspected."""
    repair_after_s: int = 0
    """`replica-repair-after`."""
    late: int = 2
    """How often a timer may fire while a message or a request is pending."""
    horizon_s: int = 30
    """The time that may pass."""
    depth: int = 200
    states: int = 10_000_000
    seconds: int = 600

    @property
    def config(self) -> Config:
        """The configuration of every node."""
        return Config(
            cluster_node_timeout=self.timeout_s * 1000 or _FOREVER,
            replica_repair_after_s=self.repair_after_s,
            appendonly=self.journal,
            appendfsync="always",
            trace_sample=0,
        )

    def job(self, name: str) -> Job | None:
        """Return the job with this name, or None."""
        return next((job for job in self.jobs if job.name == name), None)


def load(name: str) -> Scope:
    """Return a shipped scope by its name, or the scope in a file. Raise `ScopeError`."""
    return parse(text_of(name), Path(name).stem)


def text_of(name: str) -> str:
    """Return the text of a scope. Raise `ScopeError`."""
    path = Path(name) if name.endswith(".toml") else SHIPPED / f"{name}.toml"
    try:
        return path.read_text("utf-8")
    except OSError as error:
        known = ", ".join(shipped())
        raise ScopeError(f"no scope {name!r} ({error.strerror}); there are: {known}") from None


def shipped() -> list[str]:
    """Return the names of the shipped scopes."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def parse(text: str, name: str) -> Scope:
    """Return a scope from its text. Raise `ScopeError`."""
    try:
        table = tomllib.loads(text)
        clients = tuple(_clients(table.pop("clients", [])))
        faults = tuple(_faults(table.pop("faults", {})))
        exchangeable = tuple(map(_node, table.pop("exchangeable", [])))
        before = tuple(_words(table.pop("before", [])))
        scope = Scope(
            name=name, clients=clients, jobs=tuple(_jobs(clients)), faults=faults,
            exchangeable=exchangeable, before=before, **table,
        )  # fmt: skip
    except (tomllib.TOMLDecodeError, TypeError, ValueError, KeyError) as error:
        raise ScopeError(f"{name}: {error}") from None
    _check(scope)
    return scope


def _node(name: str) -> int:
    if len(name) != 1 or name not in NAMES:
        raise ScopeError(f"{name!r} is no node: a to {NAMES[-1]}")
    return NAMES.index(name)


def _clients(tables: list[dict[str, Any]]) -> Iterator[Client]:
    for table in tables:
        yield Client(node=_node(table["node"]), does=tuple(_words(table["does"])))


def _words(requests: list[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(request.split()) for request in requests)


def _faults(table: dict[str, list[str]]) -> Iterator[Fault]:
    for kind, places in table.items():
        if kind not in FAULTS:
            raise ScopeError(f"{kind!r} is no fault: {', '.join(FAULTS)}")
        for place in places:
            where = (int(place),) if kind == "leave" else tuple(map(_node, place))
            yield Fault(kind=kind, where=where)


def _jobs(clients: Sequence[Client]) -> Iterator[Job]:
    number = 0
    for client in clients:
        for words in client.does:
            if words[0] == "ADDJOB":
                yield _job(words, client.node, number)
                number += 1


def _job(words: tuple[str, ...], node: int, number: int) -> Job:
    def option(name: str, default: str) -> str:
        return words[words.index(name) + 1] if name in words else default

    if "RETRY" not in words:
        raise ScopeError(f"{' '.join(words)}: give RETRY")
    return Job(
        name=words[2],
        node=node,
        number=number,
        replicate=int(option("REPLICATE", "1")),
        retry_s=int(option("RETRY", "0")),
        key=option("UNIQUE", ""),
    )


def _check(scope: Scope) -> None:
    if not 1 <= scope.nodes <= len(NAMES):
        raise ScopeError(f"{scope.name}: from 1 to {counted(len(NAMES), 'node')}")
    places = [client.node for client in scope.clients]
    of_faults = [(fault, place) for fault in scope.faults for place in fault.where]
    places += [place for fault, place in of_faults if fault.kind != "leave"]
    if any(place >= scope.nodes for place in (*places, *scope.exchangeable)):
        raise ScopeError(f"{scope.name}: a node beyond the {scope.nodes} that there are")
    if any(client.node in scope.exchangeable for client in scope.clients):
        raise ScopeError(f"{scope.name}: a node with clients cannot be exchanged")
    names = [job.name for job in scope.jobs]
    if len(names) != len({*names}):
        raise ScopeError(f"{scope.name}: two jobs have the same body")
