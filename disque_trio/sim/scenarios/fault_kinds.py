"""The kinds of faults: one record for each kind, with all its properties.

Scenarios, plans, engines, checkers, pictures, reports and the lake read these records. The
generator of its name in `sim.engines.heap.fault_actions` applies a fault to a world.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final, Literal

import attrs

Part = Literal["links", "process", "disk", "clocks", "wall clock", "memory", "members", "queues"]
Unit = Literal["", "time", "ppm", "share"]

_ENDED: Final = ("", "0", "no", "none")
"""Last words of the detail of a level that end it."""


@attrs.frozen
class FaultKind:
    """One kind of fault."""

    name: str
    meaning: str
    part: Part
    """The part of the world that it affects."""
    family: str
    """The line in the report of a sweep that counts it."""
    amount: Unit = ""
    """The unit of `amount`; empty if the fault takes none."""
    modes: tuple[str, ...] = ()
    """The values of `mode`."""
    default_mode: str = ""
    takes_message: bool = False
    takes_queue: bool = False
    is_in_scenarios: bool = True
    is_in_plans: bool = True
    beyond_processes: str = ""
    """What the tcp engine cannot change, so that it refuses the fault; empty if it can."""
    # Rows.
    row: str = ""
    """The kind of row that begins it (`tracing.rows`)."""
    end_row: str = ""
    """The kind of row that ends it. A fault without one is momentary, or a level."""
    is_level: bool = False
    """The row's detail holds until the next such row; a detail that ends in a word of `_ENDED` ends
    the fault."""
    # Words and colours.
    drawn_as: str = ""
    """Its name in pictures, if that is not `row`."""
    detail: str = "{}"
    """The row's detail in words."""
    colour: str = "other"
    """Its colour in pictures."""
    mark: str = ""
    """The meaning of the mark (`scenarios.marks`) with the name `bar`: the fault occurred."""
    more_marks: Mapping[str, str] = attrs.Factory(dict)
    """Other marks, and their meanings."""

    @property
    def bar(self) -> str:
        """Its name in pictures."""
        return self.drawn_as or self.row

    @property
    def marks(self) -> Mapping[str, str]:
        """All its marks, and their meanings."""
        return {self.bar: self.mark, **self.more_marks} if self.mark else self.more_marks

    def is_ended_by(self, row: str, detail: str) -> bool:
        """Does a row of this kind, with this detail, end it?"""
        return row == self.end_row or (self.is_level and detail.rpartition(" ")[2] in _ENDED)

    @property
    def is_of_links(self) -> bool:
        """Does it affect links? `shape` selects them. Otherwise `nodes` and `victims` do."""
        return self.part == "links"


_link = partial(FaultKind, part="links", colour="clog", family="links slow or lossy")
_cut = partial(_link, family="links cut")
_ended = partial(FaultKind, part="process", family="processes killed")
_killed = partial(
    _ended, modes=("kill", "power", "stop"), default_mode="kill",
    row="crash", end_row="start", colour="crash",
)  # fmt: skip
_stopped = partial(FaultKind, part="process", colour="pause", family="processes paused, slow")
_disk = partial(FaultKind, part="disk", beyond_processes="disks", family="disks")
_clock = partial(FaultKind, part="clocks", beyond_processes="clocks", family="clocks")
_member = partial(FaultKind, part="members", family="nodes come and go")

# fmt: off
KINDS: Final[tuple[FaultKind, ...]] = (
    _cut("partition", "links are cut: no message arrives",
         row="cut", end_row="heal", colour="cut", mark="a link was cut",
         more_marks={"cut.one_way": "a link was cut in one direction only"}),
    _cut("cut", "as partition, of links one by one",
         is_in_scenarios=False, row="cut", end_row="heal", colour="cut"),
    _cut("clog", "links hold all packets until they are released",
         row="clog", end_row="release", mark="a link was clogged"),
    _cut("swizzle", "half of the nodes are clogged one by one, and released in another order",
         is_in_plans=False),
    _link("drop", "a share of the messages is lost (`amount`, `message`)",
          amount="share", takes_message=True,
          row="rule", end_row="unrule", drawn_as="drop", mark="a link lost some of what was sent"),
    _link("delay", "messages take longer by `amount`",
          amount="time", row="delay", is_level=True, detail="+{} ms", mark="a link was slow"),
    _link("half-open", "connections are closed at one end, and the other end is not told: what it "
          "sends is lost, without a reset; new connections work",
          row="half-open", end_row="half-open.end", colour="cut",
          mark="a connection was closed at one end, and the other end was not told"),
    _killed("crash",
            "the process is killed or stopped, or power fails (`mode`); it starts after `hold`",
            mark="a process was killed",
            more_marks={
                "restart": "a process was started again",
                "stop.in_order":
                    "a node was shut down in order and wrote its queues to its journal",
                "kill.queues_kept": "a process was killed whose journal had its queues",
                "stop.while_asking":
                    "a process ended while it asked about jobs that were to return to its queues"}),
    _killed("restart", "the same, but it starts again at once"),
    _ended("remove", "the process is killed and never starts again",
           row="remove",
           more_marks={"remove.two": "two nodes were lost for good within half a second"}),
    _ended("wipe", "the node loses its id and all data, and joins as a new one", row="wipe"),
    _stopped("pause", "the process is stopped, and continues after `hold`",
             row="pause", end_row="resume", mark="a process was stopped for a while"),
    _stopped("slow", "each batch of work takes `amount` longer",
             amount="time", beyond_processes="the speed of a process",
             row="slow", is_level=True, detail="{} ms for each batch", mark="a node was slow"),
    _disk("disk-full", "its disk has no space left",
          row="disk.full", is_level=True, mark="a disk became full, or had space again"),
    _disk("disk-error", "writes and syncs fail",
          row="disk.error", is_level=True, mark="a disk began to fail, or worked again"),
    _disk("disk-stall", "writes and syncs hang",
          row="disk.stall", is_level=True, mark="a disk began to hang, or continued"),
    _disk("disk-flip", "one bit of its journal changes; the next start finds it",
          row="disk.flip", mark="a bit of a journal changed"),
    _clock("clock-step", "the wall clock jumps by `amount`",
           part="wall clock", amount="time",
           row="clock.step", detail="{} ms", mark="a wall clock jumped"),
    _clock("clock-rate", "both clocks run faster by `amount`",
           amount="ppm", row="clock.rate", detail="{} ppm", mark="a clock changed its rate"),
    _clock("wall-freeze", "the wall clock stands still",
           part="wall clock", row="wall.freeze", end_row="wall.thaw", drawn_as="frozen wall"),
    _member("leave", "CLUSTER LEAVING yes; after `hold`, CLUSTER LEAVING no",
            row="leave", is_level=True, mark="a node left"),
    _member("join", "a new node joins: the first node meets it",
            drawn_as="join", mark="a node joined"),
    _member("forget", "all other nodes forget the node; they meet it again after `hold`",
            row="forget"),
    FaultKind("memory", "CONFIG SET maxmemory to a value of which `amount` is already used; or, "
              "with `mode` resident-size, the process takes so much that no more may be used than "
              "with that value",
              part="memory", family="memory short", amount="share",
              modes=("account", "resident-size"), beyond_processes="what a process uses",
              row="memory", is_level=True, mark="a node was short of memory",
              more_marks={
                  "memory.oom": "a node refused a job because it was out of memory",
                  "memory.evicted":
                      "a node short of memory dropped an ack, or a delivered at-most-once job"}),
    FaultKind("pause-queue", "PAUSE of `queue`, as `mode` says",
              part="queues", family="queues paused", modes=("in", "out", "all", "bcast"),
              default_mode="all", takes_queue=True,
              row="pause-queue", is_level=True, mark="a queue was paused"),
)
# fmt: on
BY_NAME: Final[Mapping[str, FaultKind]] = {kind.name: kind for kind in KINDS}
IN_SCENARIOS: Final = tuple(kind for kind in KINDS if kind.is_in_scenarios)
"""The kinds in scenarios. Plans also have `cut`, and clogs in place of swizzles."""
IN_PLANS: Final = tuple(kind for kind in KINDS if kind.is_in_plans)
WITH_ROWS: Final = tuple(kind for kind in KINDS if kind.row)
ROWS: Final[Mapping[str, FaultKind]] = {
    row: kind for kind in reversed(WITH_ROWS) for row in (kind.row, kind.end_row) if row
}
"""By kind of row that begins or ends a fault: the first kind of fault that writes it."""
LINK_ROWS: Final = {row: row == kind.end_row for row, kind in ROWS.items() if kind.is_of_links}
"""By kind of row about a fault of links: does it end the fault?"""
MODES: Final = tuple(dict.fromkeys(mode for kind in KINDS for mode in kind.modes))
MARKS: Final[Mapping[str, str]] = {
    mark: meaning for kind in KINDS for mark, meaning in kind.marks.items()
}
