"""The settings of worker processes, in one table: command line, environment, `--help`, docs."""

from functools import partial
from typing import Any, Final, Literal

import attrs

from disque_trio.cli.worker.logs import FORMATS
from disque_trio.statemachine.base import LAST_PORT
from disque_trio.terminal.options import (
    COUNT,
    URL,
    Kind,
    UsageError,
    argument,
    matching,
    one_of,
    option,
    seconds,
    switch,
    text,
    whole,
)
from disque_trio.worker.engine.records import SECOND, Settings

EPILOG: Final = """\
examples:
  disque-trio worker shop.tasks:app
  disque-trio worker shop.tasks -Q mail,video -c 20
  disque-trio worker shop.tasks --processes 4 --prefetch 100
  disque-trio worker shop.tasks --burst         run all queued jobs, then exit

signals: SIGTERM, SIGINT and SIGHUP stop the worker. The first one lets running jobs finish, and the
worker takes no more jobs; the second one cancels running jobs; the third one ends the process.
SIGUSR1: take no more jobs. SIGUSR2, SIGQUIT: log the stacks of all tasks and threads.

health: with --health 127.0.0.1:8080, GET /health returns 200 or 503, and the reason in JSON. If
there are several processes, process N listens on port 8080 + N - 1. --check queries these ports and
exits with 0 or 1; it does not import the app.

environment: each option with two dashes has a variable: DISQUE_WORKER_CONCURRENCY=20 is -c 20. The
variable of --url is DISQUE_URL. The command line has precedence.

exit code: 0 stopped, all jobs that had started have ended; 1 it could not start; 2 wrong usage;
3 jobs were interrupted and are redelivered; 75 restart it; 77 a node refused it
"""
AUTO: Final = "auto"
LOOPS: Final = ("asyncio", "trio")
LEVELS: Final = ("debug", "info", "warning", "error")
PREFIX: Final = "DISQUE_WORKER_"
_ENGINE: Final = Settings(nodes=(), queues=())


# Kinds of values.


def _prefetch(word: str) -> int | str:
    return word if word == AUTO else int(whole().read(word))


def _names(word: str) -> tuple[str, ...]:
    names = tuple(each.strip() for each in word.split(","))
    if not all(name.removeprefix("!") for name in names):
        raise ValueError
    return names


def endpoint(word: str) -> tuple[str, int]:
    """Host and port of `ADDRESS:PORT`. Raises `ValueError`."""
    host, _, number = word.rpartition(":")
    if not host or not number.isdecimal() or int(number) > LAST_PORT:
        raise ValueError
    return host.removeprefix("[").removesuffix("]"), int(number)


_NAMES: Final = Kind("a list of queues: mail,video", _names, "NAMES")
_PREFETCH: Final = Kind("a whole number, 0 or more, or auto", _prefetch, "N")
_ENDPOINT: Final = Kind(
    "an address and a port: 127.0.0.1:8080 or [::1]:8080", endpoint, "ADDRESS:PORT"
)
_NAME: Final = matching(
    r"[!-~]{1,100}", "a name: up to 100 ASCII characters without spaces", "NAME"
)


# The table.


def _setting(names: str, *more: Any, make: Any = option, group: str = "jobs", **rest: Any) -> Any:
    variable = PREFIX + names.rpartition("--")[2].replace("-", "_").upper()
    return make(names, *more, group=group, **{"variable": variable, **rest})


_process = partial(_setting, group="the process")
_switch = partial(_process, make=switch)


@attrs.frozen(kw_only=True)
class Options:
    """The settings of a worker process, in the order of the help."""

    app: str = argument(text("MODULE[:APP]"), "the app whose tasks to run", nargs="?", default="")
    queues: tuple[str, ...] = _setting(
        "-Q --queues", _NAMES,
        "mail,video: only these, mail first; mail=3,video=1: weighted shares; !low: all but low",
        (), shown="all of the tasks",
    )  # fmt: skip
    concurrency: int = _setting(
        "-c --concurrency", COUNT, "number of jobs that run at the same time", _ENGINE.concurrency
    )
    prefetch: int | Literal["auto"] = _setting(
        "--prefetch", _PREFETCH,
        "number of jobs per queue to fetch ahead; auto: enough for 0.25 s",
        AUTO,
    )  # fmt: skip
    threads: int = _setting(
        "--threads", COUNT, "number of threads for tasks that are not coroutines", 16
    )
    max_jobs: int = _setting(
        "--max-jobs", whole(), "exit with status 75 after this number of jobs", 0, shown="no limit"
    )
    burst: bool = _switch("--burst", "exit when the queues are empty", group="jobs")
    url: str = _process(
        "--url", URL, "nodes of the cluster: disque://host:port,host:port", "", shown="the app's",
        variable="DISQUE_URL",
    )  # fmt: skip
    processes: int = _process("-p --processes", COUNT, "number of worker processes", 1)
    drain: float = _process(
        "--drain", seconds(), "time for running jobs to finish when the worker stops",
        _ENGINE.drain / SECOND,
    )  # fmt: skip
    abort: float = _process(
        "--abort", seconds(), "time for cancelled jobs to clean up after --drain",
        _ENGINE.abort / SECOND,
    )  # fmt: skip
    name: str = _process(
        "--name", _NAME, "the worker's name in `disque-trio workers` and CLIENT LIST", "",
        shown="HOST-PID",
    )  # fmt: skip
    health: tuple[str, int] | None = _process(
        "--health", _ENDPOINT, "address and port of the health server"
    )
    check: bool = _switch("--check", "query --health of a running worker, and exit with 0 or 1")
    no_control: bool = _switch(
        "--no-control", "do not report the state of the worker, and accept no operations"
    )
    loop: str = _process("--loop", one_of(*LOOPS), "the event loop", "asyncio")
    log_level: str = _process("--log-level", one_of(*LEVELS), "lowest level to log", "info")
    log_format: str = _process(
        "--log-format", one_of(*FORMATS), "json: one object per line", "human"
    )
    log_done: bool = _switch("--log-done", "also log a line for each job that succeeds")
    history: str = _process(
        "--history", text("FILE"), "append the requests and replies of the worker and its "
        "tasks to this file, for `disque-trio sim judge`", "", shown="no file",
    )  # fmt: skip
    reload: bool = _switch(
        "--reload", "restart when a Python file below the current directory changes"
    )
    explain: bool = _switch(
        "--explain", "print all settings with the origin of each value, and exit"
    )

    def __attrs_post_init__(self) -> None:
        if not self.app and not self.check:
            raise UsageError("give the app whose tasks to run, such as shop.tasks:app")
        if self.check and self.health is None:
            raise UsageError("--check queries the health port: give the --health of the worker")
        if self.reload and self.burst:
            raise UsageError("give either --reload or --burst, not both")
