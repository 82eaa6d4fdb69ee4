"""`python -m benchmarks console`: the console of a node that has very many queues and jobs.

A browser opens pages and acts on them, and it is measured how long each takes until its data is
shown. Then somebody looks, and nobody, in turn, while clients add and take jobs: how long a turn of
the node is, what a request waits, and what processor time the node takes. (docs/console.md, "Very
many queues")
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import attrs
import trio
from rich.console import Console
from rich.table import Table
from trio_websocket import ConnectionClosed, open_websocket

from benchmarks import meters, output, turns
from benchmarks.crowd import ask
from benchmarks.load import tasks
from benchmarks.load.dialects import Disque
from benchmarks.load.processes import Task, work
from benchmarks.tool import BenchmarkError
from disque_trio.observe.values import encoded
from disque_trio.web.subscriptions import LINGER_S
from disque_trio.web.upgrade import PROTOCOL
from tests.cluster.processes import Fleet, Server, free_port
from tests.cluster.talk import LOOPBACK
from tests.web.chromium import devtools
from tests.web.chromium.devtools import Tab

QUEUES: Final = 100_000
JOBS: Final = 2_000_000
NEEDLES: Final = 7
"""Delayed jobs with a body of their own, which filters have to find."""
RATE: Final = 5000
"""Jobs a second that are added, taken and acknowledged."""
PAINT_MS: Final = 2000.0
ACTION_MS: Final = 300.0
LOOK_MS: Final = 1500.0 + ACTION_MS
"""Of filters for which a node looks through all of its jobs."""
RAISED: Final = 1.10
_BODY: Final = b"x" * 100
_PORTION: Final = 200_000
"""Jobs that are added at once; names begin anew."""
_LOADED: Final = b"bench:load"
_COUNTED_S: Final = 300.0
"""The limit for the first count of all queues."""
_QUIET_S: Final = LINGER_S + 2
"""After which a node asks nothing more for a browser that has gone."""
_TURNS: Final = "turns"
_COUNTED: Final = (
    "Number(/([\\d,]+) queues,/.exec(document.body.innerText)?.[1].replaceAll(',', ''))"
)
_CLICK: Final = "document.querySelector('%s').click()"
_PURGE: Final = (
    "[...document.querySelectorAll('button')]"
    ".find((button) => button.innerText.includes('Purge')).click()"
)
_FITTING: Final = (
    "[...document.querySelectorAll('#page tbody tr:has(td + td)')]"
    ".every((row) => row.innerText.includes('%s')) &&"
    r" /\d jobs?/.test(document.querySelector('#page .heading .note').innerText)"
)
_ROW: Final = "document.querySelector('tbody tr')?.cells[0]?.innerText"
_WATCH: Final = """
new Promise((done) => {
  const began = %s;
  %s;
  const look = () => {
    let is_so;
    try { is_so = (%s); } catch { is_so = false; }
    if (is_so) done(performance.now() - began); else setTimeout(look, 4);
  };
  look();
})
"""


@attrs.frozen
class Step:
    """Something that a person does, and what is shown then."""

    name: str
    does: str
    """A statement."""
    shows: str
    """An expression that becomes true."""
    limit_ms: float = ACTION_MS


@attrs.frozen
class Window:
    """What was measured while somebody looked, or nobody."""

    waits_ms: list[float]
    """Of requests."""
    turns_ms: list[float]
    cpu: float
    """Of the node; 1 is a core."""


def main(argv: Sequence[str]) -> int:
    """Measure, and print; the exit code."""
    options = _options(argv)
    out = output.console()
    out.print(f"load average {os.getloadavg()[0]:.2f}", highlight=False)
    try:
        with tempfile.TemporaryDirectory() as name:
            command = (sys.executable, "-m", "benchmarks.turns", str(Path(name, _TURNS)), "server")
            with contextlib.closing(Fleet(Path(name), command)) as fleet:
                port = free_port()
                server = fleet.server("--web-port", str(port), "--maxmemory", "16gb")
                facts = _measure(server, port, Path(name), options, out)
    except BenchmarkError as error:
        return output.refuse(out, error)
    output.write_json(options.json, facts)
    return 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks console", description=__doc__)
    parser.add_argument("--queues", type=int, default=QUEUES, help=f"({QUEUES})")
    parser.add_argument("--jobs", type=int, default=JOBS, help=f"({JOBS})")
    parser.add_argument("--rate", type=int, default=RATE, help=f"jobs a second beside ({RATE})")
    parser.add_argument("--seconds", type=float, default=10, help="each look lasts (10)")
    parser.add_argument("--rounds", type=int, default=5, help="looks (5)")
    parser.add_argument("--no-browser", action="store_true", help="looks only")
    output.add_json(parser)
    return parser.parse_args(argv)


def _measure(
    server: Server, port: int, directory: Path, options: argparse.Namespace, out: Console
) -> dict[str, Any]:
    names = [b"q:%06d" % number for number in range(options.queues)]
    for begun in range(0, options.jobs, _PORTION):
        count = min(_PORTION, options.jobs - begun)
        work([Task(tasks.adding, (server.port, Disque(), names, _BODY, count, 4, 128))])
    for _ in range(NEEDLES):
        server.client.add(names[0].decode(), "needle", "REPLICATE", 1, "DELAY", 43_200)
    steps: list[Took] = []

    def tell(took: Took) -> None:
        steps.append(took)
        name, ms, limit = took
        wanted = f"(< {limit:,.0f})" if limit else ""
        out.print(f"{name:32}{ms:8,.0f} ms {wanted}", highlight=False)

    if not options.no_browser:
        if devtools.CHROMIUM is None:
            raise BenchmarkError("there is no Chromium: `apt install chromium`, or --no-browser")
        with devtools.chromium(directory / "chromium") as browser:
            address = f"http://{LOOPBACK}:{port}/"
            trio.run(_walk, browser, address, options, tell)
    looks = _compare(server, port, directory / _TURNS, options)
    out.print(_looks_table(looks))
    return {"queues": options.queues, "jobs": options.jobs, "steps": steps, "looks": looks}


# A person with a browser.


def _steps(queues: int) -> list[Step]:
    """Names have a fixed width, so that their order is known."""
    last, some = f"q:{queues - 1:06}", f"q:{queues // 2:06}"
    page = "document.querySelector('#page').innerText"

    def go(where: str) -> str:
        return f"location.hash = '#/{where}'"

    def look(name: str, words: str, fits: str) -> Iterator[Step]:
        """At jobs with a filter: none of those that were shown before fits."""
        yield Step("jobs", go("jobs"), f"{page}.includes('the first 100 jobs')")
        yield Step(name, go(f"jobs?{words}"), _FITTING % fits, LOOK_MS)

    return [
        Step("sort by name", go("queues?sort=name&desc=true"), f"{_ROW} === '{last}'"),
        Step("sort by jobs", go("queues?sort=jobs"), f"{_ROW} !== '{last}'"),
        Step("the next page", _CLICK % ".pager button:last-of-type", f"{page}.includes('101–')"),
        Step("filter", go(f"queues?match={some[:-1]}"), f"{_ROW} === '{some}'"),
        Step("open a queue", go(f"queue/{some}"), f"{page}.includes('Oldest (')"),
        Step("plan an action", _PURGE, "document.querySelector('dialog .plan')?.innerText"),
        Step("open a job", _CLICK % 'tbody a[href*="/job/"]', f"{page}.includes('survives')"),
        *look("jobs of a queue", f"queue={some}", some),
        *look("jobs by text", "text=needle", "needle"),
        *look("jobs delayed", "state=delayed", "delayed"),
        *look("jobs older than an hour", "older=3600", "no job is as old"),
        Step("workers", go("workers"), f"{page}.includes('Plain clients')"),
        Step("delayed jobs", go("later"), f"{page}.includes('delayed jobs')"),
        Step("overview", go("overview"), "document.querySelector('tbody tr td:not(.empty)')"),
    ]


Took = tuple[str, float, float]
"""A step, the milliseconds until it is shown, and how many they may be; 0 is no limit."""


async def _walk(
    browser: str, address: str, options: argparse.Namespace, tell: Callable[[Took], None]
) -> None:
    async with _ungrouped(), devtools.tab(browser) as tab:
        for page in ("overview", "queues"):
            await tab.ask("Page.navigate", url="about:blank")
            await trio.sleep(_QUIET_S)  # nothing is known any more
            await tab.ask("Page.navigate", url=f"{address}#/{page}")
            shows = "document.querySelector('tbody tr td:not(.empty)')"
            # The page's clock begins with the navigation.
            tell((f"first paint of {page}", await _timed(tab, "0", "", shows), PAINT_MS))
        counted = f"{_COUNTED} >= {options.queues}"
        began_s = time.monotonic()
        with trio.fail_after(_COUNTED_S):
            while not await tab.run(counted):
                await trio.sleep(0.1)
        tell(("all queues are counted, further", (time.monotonic() - began_s) * 1000, 0.0))
        for step in _steps(options.queues):
            took = await _timed(tab, "performance.now()", step.does, step.shows)
            tell((step.name, took, step.limit_ms))
            await tab.press("Escape")
        assert not tab.errors, tab.errors


@contextlib.asynccontextmanager
async def _ungrouped() -> AsyncIterator[None]:
    """An error as it is, without the groups in which nurseries put it."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


async def _timed(tab: Tab, began: str, does: str, shows: str) -> float:
    try:
        return float(await tab.run(_WATCH % (began, does, shows)))
    except trio.TooSlowError:
        raise BenchmarkError(f"never: {shows}\n{await tab.text()}") from None


# Somebody who looks, and nobody.


_NOBODY: Final = "nobody looks"
_COMES: Final = "somebody has come"
_LOOKS: Final = "somebody looks"
_FIRST_PASS_S: Final = 60.0
"""The load goes on for so long, for the first count of all queues."""


def _compare(server: Server, port: int, file: Path, options: argparse.Namespace) -> dict[str, Any]:
    windows: dict[str, list[Window]] = {_NOBODY: [], _COMES: [], _LOOKS: []}
    for _ in range(options.rounds):
        with _loaded(server.port, options.rate, 3 * options.seconds + _FIRST_PASS_S):
            windows[_NOBODY].append(_window(server, file, options.seconds))
            with looking(port) as wait_for:
                windows[_COMES].append(_window(server, file, options.seconds))
                wait_for(options.queues)
                windows[_LOOKS].append(_window(server, file, options.seconds))
        time.sleep(_QUIET_S)
    return {name: _summed(each) for name, each in windows.items()}


def _summed(windows: Sequence[Window]) -> dict[str, Any]:
    return {
        "requests": _spread([each.waits_ms for each in windows]),
        "turns": _spread([each.turns_ms for each in windows]),
        "cpu": statistics.mean(each.cpu for each in windows),
    }


def _spread(windows: Sequence[list[float]]) -> dict[str, float]:
    """The p99 is the median of those of the windows, so that one disturbance does not decide."""
    cuts = statistics.quantiles([ms for each in windows for ms in each], n=1000)
    p99 = statistics.median(statistics.quantiles(each, n=100)[98] for each in windows)
    return {"p50": cuts[499], "p99": p99, "p99.9": cuts[998], "longest": max(map(max, windows))}


@contextlib.contextmanager
def _loaded(port: int, rate: int, seconds: float) -> Iterator[None]:
    """Jobs go through all the time."""
    if not rate:
        yield
        return
    begun, count = threading.Event(), int(rate * seconds)
    todo = [
        Task(tasks.consuming, (port, Disque(), _LOADED, 10, 10, count, seconds)),
        Task(tasks.pacing, (port, Disque(), _LOADED, rate, count, 10)),
    ]
    thread = threading.Thread(target=work, args=(todo, begun.set), daemon=True)
    thread.start()
    begun.wait()
    time.sleep(1)
    yield
    thread.join()


def _window(server: Server, file: Path, seconds: float) -> Window:
    turns.read(server, file)
    cpu, began = meters.cpu_s([server.pid]), time.monotonic()
    waits = ask(server.port, seconds)
    cpu = (meters.cpu_s([server.pid]) - cpu) / (time.monotonic() - began)
    return Window(waits, turns.read(server, file), cpu)


@contextlib.contextmanager
def looking(port: int, *topics: str) -> Iterator[Callable[[int], None]]:
    """A browser's socket, without a browser, whose processor time would be measured too.

    It gives a function that waits until so many queues are counted.
    """
    ours, theirs = multiprocessing.Pipe()
    args = (port, topics or ("overview", "queues"), theirs)
    process = multiprocessing.Process(target=_look, args=args, daemon=True)
    process.start()
    try:
        _wait_for(ours, -1)
        yield partial(_wait_for, ours)
        assert process.is_alive(), "it still looks"
    finally:
        process.kill()
        process.join()


def _wait_for(report: Connection, queues: int) -> None:
    deadline = time.monotonic() + _COUNTED_S
    total = -2  # an answer without queues says -1
    while total < queues:
        assert report.poll(max(deadline - time.monotonic(), 0)), "all queues are counted"
        total = report.recv()


def _look(port: int, topics: Sequence[str], report: Connection) -> None:
    trio.run(_subscribe, port, topics, report)


async def _subscribe(port: int, topics: Sequence[str], report: Connection) -> None:
    origin = [(b"Origin", f"http://{LOOPBACK}:{port}".encode())]
    async with open_websocket(
        LOOPBACK, port, "/socket", use_ssl=False, subprotocols=[PROTOCOL], extra_headers=origin
    ) as socket:
        for number, topic in enumerate(topics):
            await socket.send_message(
                encoded({"t": "sub", "id": number, "topic": topic, "args": {}, "every": 1000})
            )
        with contextlib.suppress(ConnectionClosed):
            while True:
                told = json.loads(await socket.get_message())
                if told["t"] == "put":
                    report.send(told["data"].get("total", -1))


def _looks_table(looks: dict[str, dict[str, Any]]) -> Table:
    cuts = ("p50", "p99", "p99.9", "longest")
    table = Table("ms", "", *cuts, "node, % of a core")
    for what in ("turns", "requests"):
        for name, each in looks.items():
            spread = [f"{each[what][cut]:.2f}" for cut in cuts]
            table.add_row(what, name, *spread, f"{each['cpu'] * 100:.1f}")
        nobody, somebody = looks[_NOBODY], looks[_LOOKS]
        raised = somebody[what]["p99"] / nobody[what]["p99"]
        wanted = f" (< {RAISED:.2f})" if what == "turns" else ""
        more = (somebody["cpu"] - nobody["cpu"]) * 100
        table.add_row("", "", "", f"× {raised:.2f}{wanted}", "", "", f"+ {more:.1f}")
    return table
