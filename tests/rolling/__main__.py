"""`make roll OLD=commit`: roll a cluster of real processes from that commit to this version and
back, one node at a time, under load, and print what was lost, delivered twice and refused. OLD may
also be the path of an original disque-server."""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from tests.cluster.processes import CALM, DISQUE_TRIO, Cluster, Server, eventually
from tests.rolling.load import OPTIONS, Load

HOME: Final = Path(__file__).parents[2]
NODES: Final = 3
DRAIN_S: Final = 60.0
Command = tuple[str, ...]


def main() -> int:
    """The exit status: 0 if nothing was lost, and nothing with RETRY 0 came twice."""
    parser = argparse.ArgumentParser(prog="python -m tests.rolling", description=__doc__)
    parser.add_argument("old", help="a commit, or an original disque-server")
    parser.add_argument("--rounds", type=int, default=1, help="how often up and back")
    parser.add_argument("--seconds", type=float, default=3, help="of load between two nodes")
    parser.add_argument("--kill", action="store_true", help="end nodes by SIGKILL, not SIGTERM")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="disque-roll-") as folder:
        if Path(options.old).is_file():
            # It reads no other format.
            now = (*_of(HOME), "--aof-format", "disque")
            return _roll(Path(folder), (options.old,), now, options)
        old = _checked_out(options.old, Path(folder) / "old")
        try:
            return _roll(Path(folder), _of(old), _of(HOME), options)
        finally:
            _git("worktree", "remove", "--force", str(old))


def _checked_out(commit: str, path: Path) -> Path:
    _git("worktree", "add", "--detach", str(path), commit)
    return path


def _git(*words: str) -> None:
    done = subprocess.run(
        ["git", "-C", str(HOME), *words], check=False, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"git {' '.join(words)}: {done.stderr.strip()}")


def _of(home: Path) -> Command:
    return ("env", f"PYTHONPATH={home}", sys.executable, "-P", *DISQUE_TRIO[1:])


def _roll(folder: Path, before: Command, now: Command, options: argparse.Namespace) -> int:
    directives = (*CALM, "--appendonly", "yes", "--appendfsync", "everysec")
    servers = [Server(folder / f"node-{number}", directives, before) for number in range(NODES)]
    load = Load([server.port for server in servers])
    threads = [
        threading.Thread(target=act, args=[seed], daemon=True)
        for act, seeds in ((load.produce, range(1, 4)), (load.consume, range(1, 3)))
        for seed in seeds
    ]
    try:
        cluster = Cluster(servers)
        for server in servers:
            server.start()
        for server in servers:
            server.wait()
        cluster.meet()
        cluster.wait()
        for thread in threads:
            thread.start()
        for _ in range(options.rounds):
            for command in (now, before):
                _replace_all(cluster, command, options)
        load.is_over.set()
        eventually(lambda: not load.lost, DRAIN_S, "all jobs are delivered")
        time.sleep(options.seconds)
    except AssertionError as error:
        Console().print(error, markup=False)
    finally:
        load.is_over.set()
        load.is_drained.set()
        for thread in threads:
            if thread.is_alive():
                thread.join()
        complaints = [complaint for server in servers for complaint in server.close()]
    return _report(load, complaints)


def _replace_all(cluster: Cluster, command: Command, options: argparse.Namespace) -> None:
    """One node after the other, with its files."""
    for server in cluster.servers:
        time.sleep(options.seconds)
        if options.kill:
            server.kill()
        else:
            server.terminate()
        server.command = command
        server.start().wait()
        cluster.wait()
    time.sleep(options.seconds)


def _report(load: Load, complaints: list[str]) -> int:
    missing = set(load.missing)
    table = Table(
        "option", "added", "missing", "delivered more than once", "after an ack", "refused"
    )
    for option in OPTIONS:
        jobs = [job for job, each in load.added.items() if each == option]
        refused = {code: n for (each, code), n in load.refusals.items() if each == option}
        table.add_row(
            option,
            f"{len(jobs):,}",
            f"{sum(job in missing for job in jobs)}",
            f"{sum(load.delivered[job] > 1 for job in jobs)}",
            f"{load.late[option]}",
            ", ".join(f"{code} {n}" for code, n in refused.items()),
        )
    console = Console()
    console.print(table)
    console.print(
        f"{len(load.added):,} added, {len(load.lost)} lost, {len(load.once_twice)} with RETRY 0 "
        f"twice, {load.broken} requests without an answer"
    )
    for cause, (count, seconds) in load.slow.items():
        console.print(f"slow: {cause}: {count} times, {seconds:.1f} s at most", markup=False)
    for complaint in complaints:
        console.print(complaint, markup=False)
    return 1 if load.lost or load.once_twice or complaints else 0


if __name__ == "__main__":
    sys.exit(main())
