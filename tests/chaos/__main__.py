"""`make chaos MINUTES=10`: five real nodes with append-only files, each on a machine of its own: a
network namespace, a disk and a clock. They are killed, stopped, isolated and slowed, and lose their
power, under load. What their clients saw is judged. Where namespaces are not possible, links run
through proxies."""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from disque_trio.cli.sim import main as sim
from disque_trio.sim.engines.tcp import addresses
from tests.chaos import switch
from tests.chaos.faults import MachineFaults, ProxyFaults
from tests.chaos.machine import Shims
from tests.chaos.running import SETTLE_S, SLACK_S, Chaos, Result
from tests.chaos.switch import Switch
from tests.chaos.ways import Ways
from tests.cluster.power import library


def main() -> int:
    """The exit status: 0 if no promise was broken, and no node ended by itself."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="of rounds (10)")
    parser.add_argument("--nodes", type=int, default=5, help="how many (5)")
    parser.add_argument("--seed", type=int, help="of faults and load (drawn)")
    parser.add_argument("--keep", action="store_true", help="keep the files of a run that passed")
    parser.add_argument("--proxies", action="store_true", help="no namespaces")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    console = Console()
    lacks = "" if options.inside or options.proxies else _lacks()
    if not (options.inside or options.proxies or lacks):
        words = [sys.executable, "-m", "tests.chaos", *sys.argv[1:], "--inside"]
        os.execvp(switch.ENTER[0], [*switch.ENTER, f'{switch.PREPARE} && exec "$0" "$@"', *words])
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    directory = Path(tempfile.mkdtemp(prefix="disque-chaos-"))
    if options.inside:
        where, chaos = "namespaces", _on_machines(directory, seed, options.nodes)
    else:
        where, chaos = "proxies", _behind_proxies(directory, seed, options.nodes)
    console.print(
        f"{lacks}seed {seed}, {options.nodes} nodes, links through {where}, files in {directory}",
        highlight=False,
    )
    result = _run(console, chaos, 60 * options.minutes)
    console.print(_table(result))
    limits = ("--settle", f"{SETTLE_S:g}", "--slack", f"{SLACK_S:g}")
    status = sim(["judge", *limits, str(result.history)])
    for complaint in result.complaints:
        console.print(complaint, markup=False, style="red")
    if status or result.complaints:
        console.print(f"files are kept in {directory}", highlight=False)
        return status or 1
    if not options.keep:
        shutil.rmtree(directory)
    return 0


def _lacks() -> str:
    """Why nodes cannot have machines of their own."""
    if not switch.is_possible():
        return "no namespaces or TUN devices here (unshare, nsenter, ip, /dev/net/tun): "
    return "" if library.is_possible() else "no C compiler here, so no power cuts and clocks: "


def _on_machines(directory: Path, seed: int, nodes: int) -> Chaos:
    shims = Shims.made(directory)
    return Chaos(directory, seed, Switch(nodes, shims, seed), MachineFaults)


def _behind_proxies(directory: Path, seed: int, nodes: int) -> Chaos:
    return Chaos(directory, seed, Ways(addresses.find(nodes), nodes, seed), ProxyFaults)


def _run(console: Console, chaos: Chaos, seconds: float) -> Result:
    columns = (
        TextColumn("round {task.fields[round]}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    began = time.monotonic()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=seconds, round=0)

        def say(what: str) -> None:
            spent = min(time.monotonic() - began, seconds)
            progress.update(task, description=what, round=chaos.rounds, completed=spent)

        chaos.say = say
        result = chaos.run(began + seconds)
        progress.update(task, description="done", completed=seconds)
    return result


def _table(result: Result) -> Table:
    table = Table("fault", "times", title=f"{result.rounds} rounds")
    table.columns[1].justify = "right"
    for kind, times in sorted(result.faults.items()):
        table.add_row(kind, f"{times:,}")
    return table


if __name__ == "__main__":
    sys.exit(main())
