"""The options of `disque-trio explain`."""

from typing import Final

import attrs

from disque_trio.cli.frame import JOB_ID, json_switch
from disque_trio.cli.options import NodeOptions
from disque_trio.explain.facts import JOURNALS, NO_JOURNAL, Facts
from disque_trio.terminal.options import UsageError, argument, one_of, option, text, whole

_DEFAULT_NODES: Final = 3
_ASSUMED: Final = "an assumed cluster"
_ASKED: Final = "a running cluster"


@attrs.frozen(kw_only=True)
class Options(NodeOptions):
    """The command line, read and checked."""

    nodes: int | None = option(
        "--nodes", whole(1, 1_000), "number of nodes", shown=f"{_DEFAULT_NODES}",
        group=_ASSUMED,
    )  # fmt: skip
    zones: int | None = option(
        "--zones", whole(1, 1_000), "number of zones, with equal numbers of nodes (no zones)",
        group=_ASSUMED,
    )  # fmt: skip
    journal: str | None = option(
        "--journal", one_of(*JOURNALS), "none, or the appendfsync of nodes with appendonly yes",
        group=_ASSUMED, shown=NO_JOURNAL,
    )  # fmt: skip
    job: str | None = option(
        "--job", JOB_ID, "explain this job of the cluster", group=_ASKED, excludes="which"
    )
    """Of a running cluster."""
    queue: str | None = option(
        "--queue",
        text("NAME"),
        "explain the options that most jobs of this queue have",
        group=_ASKED,
        excludes="which",
    )
    trials: int = option(
        "--trials", whole(0, 10_000), "number of simulator runs for each kind of fault", 0,
        shown="0",
    )  # fmt: skip
    is_json: bool = json_switch("result as one JSON object")
    words: tuple[str, ...] = argument(text("ADDJOB"), None, nargs="...")
    """The ADDJOB; none with a job or a queue."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        is_found = self.job is not None or self.queue is not None
        if is_found and self.words:
            raise UsageError(f"--job and --queue replace the ADDJOB: omit '{' '.join(self.words)}'")
        described = (self.nodes, self.zones, self.journal)
        if self.is_asked and any(each is not None for each in described):
            raise UsageError(
                "--nodes, --zones and --journal describe an assumed cluster: omit --url, -h, -p, "
                "--job and --queue"
            )
        nodes = self.nodes or _DEFAULT_NODES
        if self.zones is not None and self.zones > nodes:
            raise UsageError(
                f"{self.zones} zones need at least {self.zones} nodes, not {nodes}: give --nodes"
            )

    @property
    def is_asked(self) -> bool:
        """Is a running cluster asked?"""
        return self.job is not None or self.queue is not None or self.is_node_named

    @property
    def facts(self) -> Facts | None:
        """The cluster that is assumed; None: one is asked."""
        if self.is_asked:
            return None
        nodes, zones = self.nodes or _DEFAULT_NODES, self.zones
        return Facts(
            nodes=nodes,
            journal=self.journal or NO_JOURNAL,
            zones=tuple(f"z{1 + node % zones}" for node in range(nodes)) if zones else (),
        )
