"""`make example`: the shop on this machine, with a worker and a node that are killed."""

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from disque_trio.client import BlockingClient, DisqueError
from disque_trio.client.commands import hello
from examples.shop.tasks import connect

FIRST_PORT = 7721
"""Three nodes and the API take four ports in a row, the first from here on that are free."""
ORDERS = 20
PATIENCE = 90.0
"""Seconds until every order must be charged and mailed."""

console = Console(highlight=False)


class Processes(ExitStack):
    """Processes that end with the `with` block, however it is left."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def start(self, name: str, *words: str) -> "subprocess.Popen[bytes]":
        """Run `python -m …`; what it writes goes to a file of its name."""
        log = self.enter_context((self._folder / f"{name}.log").open("wb"))
        command = [sys.executable, "-m", *words]
        # In a session of its own, Ctrl-C reaches this program only, which ends the others.
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self.callback(end, process)
        console.print(f"{name}: process {process.pid}")
        return process


def end(process: "subprocess.Popen[bytes]") -> None:
    """SIGTERM, and SIGKILL after some seconds."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def find_ports() -> range:
    """Four ports; what nodes say to each other takes a port that is 10,000 higher."""
    for first in range(FIRST_PORT, FIRST_PORT + 1000, 10):
        ports = range(first, first + 4)
        if all(is_free(port) and is_free(port + 10_000) for port in ports):
            return ports
    raise TimeoutError(f"no four ports in a row are free from {FIRST_PORT} on")


def is_free(port: int) -> bool:
    """Does nobody listen there?"""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def until(what: str, is_so: Callable[[], bool], within: float = 30) -> None:
    """Wait until something is so. Raises `TimeoutError`."""
    last = time.monotonic() + within
    while not is_so():
        if time.monotonic() > last:
            raise TimeoutError(f"not within {within:.0f} s: {what}")
        time.sleep(0.1)


def knows(port: int, nodes: int) -> bool:
    """Does the node answer, and know so many?"""
    try:
        with BlockingClient(f"disque://127.0.0.1:{port}") as client:
            return len(client.run(hello())) - 2 == nodes  # after its version and id
    except DisqueError:
        return False


def start_nodes(
    processes: Processes, folder: Path, ports: range
) -> list["subprocess.Popen[bytes]"]:
    """Nodes that know each other."""
    nodes = []
    for port in ports:
        place = folder / str(port)
        place.mkdir()
        words = ["disque_trio", "server", "--port", str(port), "--bind", "127.0.0.1"]
        nodes.append(processes.start(f"node-{port}", *words, "--dir", str(place)))
    until("the nodes answer", lambda: all(knows(port, 1) for port in ports))
    with BlockingClient(f"disque://127.0.0.1:{ports[0]}") as client:
        for port in ports[1:]:
            client.call("CLUSTER", "MEET", "127.0.0.1", str(port))
    until("the nodes know each other", lambda: all(knows(port, len(ports)) for port in ports))
    return nodes


def post(port: int, number: int) -> bool:
    """Place an order, and say whether it was taken. To place it again does no harm."""
    url = f"http://127.0.0.1:{port}/orders/{number}?cents={100 * number}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=10) as got:
            return bool(got.status == 202)
    except (urllib.error.URLError, TimeoutError):
        return False


def order(port: int, numbers: range) -> None:
    """Place orders, each until it is taken."""
    for number in numbers:
        until(f"order {number} is taken", partial(post, port, number))


def begun(folder: Path) -> Counter[int]:
    """How many times each order began to be charged, by what the workers have logged."""
    logs = "".join(log.read_text() for log in folder.glob("worker-*.log"))
    return Counter(map(int, re.findall(r"charges order (\d+)", logs)))


def counts(database: sqlite3.Connection, table: str) -> dict[int, int]:
    """How many rows each order has."""
    return dict(database.execute(f"SELECT number, count(*) FROM {table} GROUP BY number"))


def show(database: sqlite3.Connection, tries: Counter[int]) -> bool:
    """Print what happened to each order. Is every one charged exactly once, and mailed?"""
    charges, invoices, mails = (counts(database, each) for each in ("charges", "invoices", "mails"))
    table = Table("order", "runs of charge", "charged", "invoices", "mails", "")
    is_good = True
    for number in range(1, ORDERS + 1):
        found = [each.get(number, 0) for each in (charges, invoices, mails)]
        is_well = found[0] == 1 and found[2] >= 1
        is_good &= is_well
        table.add_row(*map(str, (number, tries[number], *found)), "ok" if is_well else "[red]wrong")
    console.print(table)
    return is_good


def tell(folder: Path, ports: range) -> bool:
    """Run the shop through its bad day. Is every order as it should be?"""
    with Processes(folder) as processes, closing(connect()) as database:
        nodes = start_nodes(processes, folder, ports[:3])
        api = ports[3]
        serve = ["uvicorn", "examples.shop.api:api", "--host", "127.0.0.1", "--port", str(api)]
        processes.start("api", *serve)
        worker = ["disque_trio", "worker", "examples.shop.tasks:app", "--concurrency", "4"]
        workers = [processes.start(f"worker-{number}", *worker) for number in (1, 2)]

        order(api, range(1, ORDERS // 2))
        log = folder / "worker-1.log"
        until("worker-1 charges an order", lambda: "charges order" in log.read_text())
        console.print("kill -9 of worker-1, which is charging")
        workers[0].send_signal(signal.SIGKILL)
        order(api, range(ORDERS // 2, ORDERS * 3 // 4))
        console.print(f"kill -9 of node-{ports[0]}, from which the others take jobs")
        nodes[0].send_signal(signal.SIGKILL)
        order(api, range(ORDERS * 3 // 4, ORDERS + 1))

        try:
            done = "every order is mailed"
            until(done, lambda: len(counts(database, "mails")) == ORDERS, PATIENCE)
        except TimeoutError as error:
            console.print(f"[red]{error}")
        return show(database, begun(folder))


def main() -> int:
    """0 if every order was charged exactly once, and mailed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the processes, as Ctrl-C does
    with tempfile.TemporaryDirectory(prefix="shop-") as folder:
        os.environ["SHOP_DATABASE"] = f"{folder}/shop.db"
        try:
            ports = find_ports()
            nodes = ",".join(f"127.0.0.1:{port}" for port in ports[:3])
            os.environ["DISQUE_URL"] = f"disque://{nodes}"
            return 0 if tell(Path(folder), ports) else 1
        except TimeoutError as error:
            console.print(f"[red]{error}")
            for log in sorted(Path(folder).glob("*.log")):
                console.print(f"{log.name}: {log.read_text()[-500:]}", markup=False)
            return 1
        except KeyboardInterrupt:
            return 130


if __name__ == "__main__":
    sys.exit(main())
