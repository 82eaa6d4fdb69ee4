"""The sandbox of a console: one simulated cluster that all browsers share.

Its time stands still, or goes on in short slices between what browsers ask.
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
"""Virtual seconds in a second of real time. It stands still at 0."""
SLICE_S: Final = 0.02
"""For so long it may keep the process at a time."""
REST_S: Final = 0.03
"""Between two slices."""
LONELY_S: Final = 20.0
"""When nobody has looked for so long, it stands still."""
PIECE: Final = 1_000
"""Rows that are put into a slice at a time: some 20 ms of work."""
ANSWER: Final = 10_000
"""Rows of an answer at most, if they are in slices already."""
SLICES: Final = 500
"""Slices of an answer at most."""
FAULT_MOST: Final = 300
"""Characters of what the page says of a bug."""
NODES: Final = 9
SEED: Final = (1 << 53) - 1
_NUMBER: Final = re.compile("[0-9]{1,15}")


Log = Callable[[str, Json], None]
"""Logs an event with facts."""


@attrs.define
class Course:
    """Time that passes as fast as it can, up to some moment."""

    words: str
    moments: Iterator[Micros]
    is_closed: bool = False
    """Nothing may be done meanwhile."""
    until: Micros = 0


@attrs.define(eq=False)
class SandboxRoom:
    """The sandbox, and how its time passes. `run` must run while browsers ask."""

    plan: Plan | None = None
    """Of a scenario, which it begins with; without one it is an empty cluster."""
    path: str = ""
    """The file of the plan."""
    nodes: int = 3
    seed: int = 0
    clock: Callable[[], float] = time.perf_counter
    """Seconds of real time, by which slices end."""
    epoch: int = 0
    """How often it has begun anew."""
    pace: float = 0
    box: Sandbox = attrs.field(init=False)
    _course: Course | None = None
    _owed: float = 0.0
    """Virtual microseconds that the pace has not been given yet."""
    _verdict: Json | None = None
    _failed: str = ""
    """What has failed, though the run may go on."""
    _undrawn: str = ""
    """What has failed of the timeline. There are no further slices: the table has taken part of
    the rows."""
    _is_judged: bool = False
    """It has ended, and the judge looks or has looked at it."""
    _table: Table = attrs.field(init=False)
    _slices: list[Json] = attrs.Factory(list)
    _sliced: int = 0
    """Rows that are in slices."""
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

    # What is shown.

    def state(self) -> Json:
        """The answer to the topic."""
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
        """A file of it; None if there is no such one. Paths are below ``/sandbox/``."""
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
        """The slices from this number on (`picture.table`), and the number of the next: not all of
        them if they are many, for nothing else goes on meanwhile."""
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
        """The next one, if there are rows for it."""
        fresh = self.box.rows[self._sliced : self._sliced + PIECE]
        if not fresh or self._undrawn:
            return None
        sliced = self._sliced + len(fresh)
        is_last = sliced == len(self.box.rows)  # only then has nothing else happened until now
        try:
            made = self._table.extend(fresh, self.box.now if is_last else 0)
        except Exception as error:
            self._undrawn = self._fault("the timeline", error)
            return None
        if self._slices:
            self._slices[-1]["bars"] = []  # the next slice has all of them
        self._sliced = sliced
        self._slices.append(made)
        return made

    # What is done.

    def do(self, args: Json) -> list[str]:
        """One operation, or one order about time: in words what was done. Raises `MistakeError`."""
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
        return f"time goes on ×{pace}" if pace else "time stands still"

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
        return self._go(Course("until nothing happens to any job", self.box.quieting()))

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
        """An empty cluster; or the scenario, up to a moment, from which a person goes on."""
        if self.plan is None and args.has("at"):
            raise OperationError(
                "there is no scenario to go on from: give --scenario to the console"
            )
        if self.plan is None or args.has("nodes"):
            nodes = args.number("nodes", 1, NODES, self.nodes)
            seed = args.number("seed", 0, SEED, self.seed)
            self._begin(None, nodes, seed)
            return f"{nodes} nodes, seed {seed}"
        at = args.number("at", 0, self.plan.chaos, 0)
        self._begin(self.plan, 0, 0)
        words = f"the scenario goes on to {duration(at)}"
        self._course = Course(words, iter([at]), is_closed=True)
        return words

    # What fails is a bug of ours. It ends neither the process nor the page.

    def _fault(self, what: str, error: Exception) -> str:
        """Log it. What the page says."""
        trace = "".join(traceback.format_exception(error))
        self._log("the sandbox has failed: this is a bug", {"traceback": trace})
        text = f"{what} has failed, the log says where: {type(error).__name__}: {error}"
        return text[:FAULT_MOST]

    def _end_by(self, error: Exception) -> None:
        """Nobody knows what the simulator would do next. What it did is judged."""
        self.box.ended = self._fault("the simulator", error)
        self.pace, self._course, self._is_judged = 0, self._judging(), True

    # Time.

    async def run(self, log: Log) -> None:
        """Let time pass, until it is cancelled. `log` is told of what fails."""
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
        """One slice."""
        ends = self.clock() + SLICE_S
        if self._course is not None:
            self._follow(self._course, ends)
        elif trio.current_time() - self._looked > LONELY_S:
            self.pace = 0
        else:
            # What the process cannot manage is not made up for.
            self._owed = min(self._owed + real_s * 1e6 * self.pace, 1e6 * self.pace)
            self._owed -= self._run(self.box.now + int(self._owed), ends)
        if self.box.ended and self._course is None and not self._is_judged:
            self.pace, self._course, self._is_judged = 0, self._judging(), True

    def _run(self, until: Micros, ends: float) -> Micros:
        """Run to this time, or as far as one comes. How much time has passed."""
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
"""Orders about time, beside the operations."""


def _file(name: str, text: str, kind: bytes) -> Response:
    attachment = b'attachment; filename="sandbox-%s"' % name.encode()
    return Response(200, text.encode(), kind, ((b"Content-Disposition", attachment),))
