"""The sandbox of a console: one simulated cluster that all browsers share.

Its virtual time stands still, or passes in short slices between requests.
"""

import re
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs
import trio

from disque_trio.observe.values import Json, encoded
from disque_trio.sim.picture.plan_words import duration
from disque_trio.sim.picture.table import Table
from disque_trio.sim.sandbox.args import Args, OperationError
from disque_trio.sim.sandbox.sandbox import GRID, Sandbox
from disque_trio.sim.sandbox.script import script
from disque_trio.sim.sandbox.state import state
from disque_trio.sim.sandbox.verdicts import judging
from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.scenarios.plan import Micros, Plan
from disque_trio.web.messages import JSON, Request, Response
from disque_trio.worker.operating.plans import MistakeError

PACES: Final = (0, 0.1, 0.25, 0.5, 1, 2, 5, 10)
"""Virtual seconds per second of real time. At 0, virtual time stands still."""
SLICE_S: Final = 0.02
"""The maximum real time of a slice, in which it blocks the process."""
REST_S: Final = 0.03
"""The pause between two slices."""
LONELY_S: Final = 20.0
"""Virtual time stops if no browser has requested the state for so long."""
PIECE: Final = 1_000
"""The maximum number of rows that are converted at a time: some 20 ms of work."""
ANSWER: Final = 10_000
"""The maximum number of rows in an answer, if they are converted already."""
SLICES: Final = 500
"""The maximum number of slices in an answer."""
FAULT_MOST: Final = 300
"""The maximum number of characters of an error on the page."""
NODES: Final = 9
SEED: Final = (1 << 53) - 1
_NUMBER: Final = re.compile("[0-9]{1,15}")


Log = Callable[[str, Json], None]
"""Logs an event with its fields."""


@attrs.define
class Course:
    """Virtual time that passes as fast as possible, up to some moment."""

    words: str
    moments: Iterator[Micros]
    is_closed: bool = False
    """Are operations refused meanwhile?"""
    until: Micros = 0


@attrs.define(eq=False)
class SandboxRoom:
    """The sandbox, and the passing of its virtual time. `run` must run while there are browsers."""

    plan: Plan | None = None
    """The plan of the scenario with which it begins; if None, the cluster is empty."""
    path: str = ""
    """The file of the plan."""
    nodes: int = 3
    seed: int = 0
    clock: Callable[[], float] = time.perf_counter
    """Returns seconds of real time, which limit the slices."""
    epoch: int = 0
    """The number of starts, including the first."""
    pace: float = 0
    box: Sandbox = attrs.field(init=False)
    _course: Course | None = None
    _owed: float = 0.0
    """Virtual microseconds that are due at the current pace and have not passed yet."""
    _verdict: Json | None = None
    _failed: str = ""
    """An error after which the run can continue."""
    _undrawn: str = ""
    """An error of the timeline. There are no further slices, because the table contains only a part
    of the rows."""
    _is_judged: bool = False
    """Has the judge started after the end of the run?"""
    _table: Table = attrs.field(init=False)
    _slices: list[Json] = attrs.Factory(list)
    _sliced: int = 0
    """The number of rows in slices."""
    _looked: float = 0.0
    _wake: trio.Event = attrs.Factory(trio.Event)
    _log: Log = lambda _event, _facts: None

    def __attrs_post_init__(self) -> None:
        self._begin(self.plan, self.nodes, self.seed)

    def _begin(self, plan: Plan | None, nodes: int, seed: int) -> None:
        self.box = Sandbox(plan, nodes=nodes, seed=seed)
        self.epoch += 1
        self.pace, self._course, self._verdict = 0, None, None
        self._failed = self._undrawn = ""
        self._owed, self._is_judged = 0.0, False
        self._table = Table(self.box.sim.plan.nodes, self.box.context.nodes)
        self._slices, self._sliced = [], 0

    def state(self) -> Json:
        """Return the answer of the topic."""
        self._looked = trio.current_time()
        return {
            **state(self.box),
            "epoch": self.epoch,
            "pace": self.pace,
            "doing": self._course.words if self._course else "",
            "verdict": self._verdict,
            "failed": self._failed or self._undrawn,
            "is_by_hand": self.box.is_by_hand,
            "has_scenario": self.plan is not None,
        }

    def answer(self, request: Request) -> Response | None:
        """Return a file of the sandbox; None if there is no such one. Paths are below
        ``/sandbox/``."""
        name = request.path.removeprefix("/sandbox/")
        if name == "operations.py":
            return _file(name, script(self.box, self.path), b"text/x-python; charset=utf-8")
        if name == "plan.json":
            text = plan_file.dump(
                self.box.plan(), "operations of a sandbox, but for jobs taken by hand"
            )
            return _file(name, text, JSON)
        kind, _, rest = name.partition("/")
        epoch, _, first = rest.partition("/")
        if kind != "rows" or not (_NUMBER.fullmatch(epoch) and _NUMBER.fullmatch(first)):
            return None
        if int(epoch) != self.epoch:
            return Response(200, encoded({"is_gone": True}).encode(), JSON)
        return Response(200, encoded(self._rows(int(first))).encode(), JSON)

    def _rows(self, first: int) -> Json:
        """Return slices from this number on (`picture.table`) and the number of the next. Their
        number is limited, because an answer blocks the loop."""
        found, rows = self._slices[first : first + SLICES], 0
        for number, each in enumerate(found):
            rows += len(each["rows"]["time"])
            if rows > ANSWER and number:
                found = found[:number]
                break
        if not found and (fresh := self._slice()):
            found = [fresh]
        if not found and self._undrawn:
            return {"is_gone": True}
        following = min(first, len(self._slices)) + len(found)
        are_fresh = self._sliced < len(self.box.rows) and not self._undrawn
        is_more = following < len(self._slices) or are_fresh
        return {"slices": found, "next": following, "is_more": is_more}

    def _slice(self) -> Json | None:
        """Convert the next rows; return None if there are none."""
        fresh = self.box.rows[self._sliced : self._sliced + PIECE]
        if not fresh or self._undrawn:
            return None
        sliced = self._sliced + len(fresh)
        is_last = sliced == len(self.box.rows)  # only then is the time after it empty until now
        try:
            made = self._table.extend(fresh, self.box.now if is_last else 0)
        except Exception as error:
            self._undrawn = self._fault("the timeline", error)
            return None
        if self._slices:
            self._slices[-1]["bars"] = []  # the next slice contains all of them
        self._sliced = sliced
        self._slices.append(made)
        return made

    def do(self, args: Json) -> list[str]:
        """Run one operation or time order, and return what was done, in words. Raise
        `MistakeError`."""
        values = dict(args)
        name = values.pop("operation", None)
        if not isinstance(name, str):
            raise MistakeError("'operation' is missing")
        try:
            order = _ORDERS.get(name)
            if order is None:
                self._check_free()
                return [self.box.do(name, **values)]
            return [order(self, Args(values, self.box.context.nodes))]
        except OperationError as error:
            raise MistakeError(str(error)) from None
        except Exception as error:
            self._end_by(error)
            raise MistakeError(self.box.ended) from None
        finally:
            self._wake.set()

    def _check_free(self) -> None:
        if self._course is not None and self._course.is_closed:
            raise OperationError(f"wait: {self._course.words}")

    def _set_pace(self, args: Args) -> str:
        pace = args.values.get("pace")
        if pace not in PACES or isinstance(pace, bool):
            raise OperationError(f"the pace is one of {', '.join(map(str, PACES))}")
        if pace:
            self._check_time()
        self._check_free()
        self.pace, self._owed = pace, 0.0
        self._course = None
        return f"time runs ×{pace}" if pace else "time is stopped"

    def _check_time(self) -> None:
        if self.box.ended:
            raise OperationError(f"{self.box.ended}: begin anew")

    def _step(self, _args: Args) -> str:
        self._check_time()
        self._check_free()
        self.pace, self._course = 0, None
        self.box.step()
        return f"at {duration(self.box.now)}"

    def _quiet(self, _args: Args) -> str:
        return self._go(Course("until no job has events", self.box.quieting()))

    def _finish(self, _args: Args) -> str:
        words = "everything heals, and all jobs are ended"
        return self._go(Course(words, self.box.finishing(), is_closed=True))

    def _go(self, course: Course) -> str:
        self._check_time()
        self._check_free()
        self.pace, self._course = 0, course
        return course.words

    def _judge(self, _args: Args) -> str:
        self._check_free()
        self.pace, self._course = 0, self._judging()
        return self._course.words

    def _judging(self) -> Course:
        return Course("the judge looks at all events", self._judged(), is_closed=True)

    def _judged(self) -> Iterator[Micros]:
        self._failed = ""
        pieces = judging(self.box)
        while True:
            try:
                next(pieces)
            except StopIteration as end:
                self._verdict = end.value
                return
            except Exception as error:
                self._verdict, self._failed = None, self._fault("the judge", error)
                return
            yield self.box.now

    def _anew(self, args: Args) -> str:
        """Restart with an empty cluster, or with the scenario up to a moment, for operations from
        there on."""
        if self.plan is None and args.has("at"):
            raise OperationError(
                "there is no scenario to take over: give --scenario to the console"
            )
        if self.plan is None or args.has("nodes"):
            nodes = args.number("nodes", 1, NODES, self.nodes)
            seed = args.number("seed", 0, SEED, self.seed)
            self._begin(None, nodes, seed)
            return f"{nodes} nodes, seed {seed}"
        at = args.number("at", 0, self.plan.chaos, 0)
        self._begin(self.plan, 0, 0)
        words = f"the scenario continues to {duration(at)}"
        self._course = Course(words, iter([at]), is_closed=True)
        return words

    # These errors are bugs. They end neither the process nor the page.

    def _fault(self, what: str, error: Exception) -> str:
        """Log the error, and return the text for the page."""
        trace = "".join(traceback.format_exception(error))
        self._log("the sandbox has failed: this is a bug", {"traceback": trace})
        text = f"{what} has failed, see the log: {type(error).__name__}: {error}"
        return text[:FAULT_MOST]

    def _end_by(self, error: Exception) -> None:
        """End the run after an error, because the state of the simulator is undefined, and judge
        it."""
        self.box.ended = self._fault("the simulator", error)
        self.pace, self._course, self._is_judged = 0, self._judging(), True

    async def run(self, log: Log) -> None:
        """Let virtual time pass, until cancelled. Errors are logged with `log`."""
        self._log = log
        last = trio.current_time()
        while True:
            if self._course is None and not self.pace:
                self._wake = trio.Event()
                await self._wake.wait()
                last = trio.current_time()
            now = trio.current_time()
            try:
                self._pass(now - last)
            except Exception as error:
                self._end_by(error)
            last = now
            await trio.sleep(REST_S)

    def _pass(self, real_s: float) -> None:
        """Run one slice."""
        ends = self.clock() + SLICE_S
        if self._course is not None:
            self._follow(self._course, ends)
        elif trio.current_time() - self._looked > LONELY_S:
            self.pace = 0
        else:
            # Time that the process cannot keep up with is dropped.
            self._owed = min(self._owed + real_s * 1e6 * self.pace, 1e6 * self.pace)
            self._owed -= self._run(self.box.now + int(self._owed), ends)
        if self.box.ended and self._course is None and not self._is_judged:
            self.pace, self._course, self._is_judged = 0, self._judging(), True

    def _run(self, until: Micros, ends: float) -> Micros:
        """Run to this time, or until the slice ends. Return how much virtual time has passed."""
        began = self.box.now
        while self.box.now < until and not self.box.ended and self.clock() < ends:
            self.box.run_to(min(until, self.box.now + GRID))
        return self.box.now - began

    def _follow(self, course: Course, ends: float) -> None:
        while self.clock() < ends:
            self._run(course.until, ends)
            if self.box.now < course.until and not self.box.ended:
                return
            try:
                course.until = next(course.moments)
            except StopIteration:
                self._course = None
                return


_ORDERS: Final[Mapping[str, Any]] = {
    "pace": SandboxRoom._set_pace,
    "step": SandboxRoom._step,
    "quiet": SandboxRoom._quiet,
    "finish": SandboxRoom._finish,
    "judge": SandboxRoom._judge,
    "anew": SandboxRoom._anew,
}
"""Orders about virtual time, in addition to the operations."""


def _file(name: str, text: str, kind: bytes) -> Response:
    attachment = b'attachment; filename="sandbox-%s"' % name.encode()
    return Response(200, text.encode(), kind, ((b"Content-Disposition", attachment),))
