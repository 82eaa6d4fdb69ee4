"""What connects the nodes of a run of chaos: proxies (`ways.py`), or a switch (`switch.py`)."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from disque_trio.sim.scenarios.plan import Micros
from tests.cluster.processes import Server

Way = tuple[int, int]
"""From one node to another, numbered from 1."""


class Links(Protocol):
    """All links among some nodes. Each fault adds to those that there are, until it is undone."""

    nodes: int

    def __enter__(self) -> Self:
        """Be there before the nodes are started, and until they have ended."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Links end."""

    @property
    def ends(self) -> Sequence[int]:
        """The numbers of nodes, and of clients if their connections are among the links."""

    def server(self, number: int, directory: Path, options: Sequence[str]) -> Server:
        """A node that has not been started."""

    def seen(self, number: int) -> tuple[str, int]:
        """Where others reach this node."""

    def cut(self, ways: Iterable[Way]) -> None:
        """Let nothing through."""

    def mend(self, ways: Iterable[Way]) -> None:
        """Undo `cut`."""

    def clog(self, ways: Iterable[Way]) -> None:
        """Keep everything back."""

    def release(self, ways: Iterable[Way]) -> None:
        """Undo `clog`: what was kept back arrives."""

    def delay(self, ways: Iterable[Way], more: Micros) -> None:
        """Add to the latency; a negative number undoes it."""

    def limit(self, bytes_per_second: int) -> None:
        """Of each link in each direction; 0 is no limit."""

    def state(self, way: Way) -> str:
        """What is wrong with this direction of a link; nothing if nothing is."""
