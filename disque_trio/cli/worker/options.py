"""The options of `disque-trio worker`. Each may stand in the environment, too."""

import argparse
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import attrs

from disque_trio.cli.frame import count
from disque_trio.cli.worker.logs import FORMATS
from disque_trio.terminal.arguments import Parser

_DESCRIPTION: Final = """\
Runs the tasks of an app. MODULE:APP names it: the module is imported, from the current directory
if it is there, and APP is the name of the App in it (app).
"""
_EPILOG: Final = """\
examples:
  disque-trio worker shop.tasks:app
  disque-trio worker shop.tasks -Q mail,video -c 20
  disque-trio worker shop.tasks --processes 4 --prefetch 100
  disque-trio worker shop.tasks --burst         run what is there, then end

signals: SIGTERM, SIGINT and SIGHUP stop the worker: it takes no more jobs, and lets those run on
that have begun; the second one cancels them; the third one ends the process. SIGUSR1: take no more
jobs. SIGUSR2, SIGQUIT: write the stacks of all tasks and threads to the log.

health: --health 127.0.0.1:8080 answers GET /health with 200 or 503, and says why in JSON. Process N
of several listens N-1 ports above. --check asks these ports and ends with 0 or 1; it imports no
app.

environment: DISQUE_WORKER_CONCURRENCY=20 is -c 20, and so on for each option with two dashes, but
DISQUE_URL is --url. The command line has precedence.

exit code: 0 stopped, all jobs that had begun have ended; 1 it could not begin; 2 wrong usage;
3 jobs were interrupted, and other workers get them; 75 start it again; 77 a node refuses it
"""
AUTO: Final = "auto"
LOOPS: Final = ("asyncio", "trio")
LEVELS: Final = ("debug", "info", "warning", "error")
PREFIX: Final = "DISQUE_WORKER_"


@attrs.frozen(kw_only=True)
class Options:
    """The command line and the environment, read and checked."""

    app: str
    """MODULE:APP, or MODULE."""
    url: str
    """Empty is the app's."""
    queues: tuple[str, ...]
    """In order of precedence, or with weights behind `=`. Empty is all queues of the app's tasks in
    turn. Names behind `!` are left out."""
    concurrency: int
    prefetch: int | Literal["auto"]
    threads: int
    max_jobs: int
    """0 is no limit."""
    burst: bool
    processes: int
    drain: float
    """Seconds, as `abort`."""
    abort: float
    name: str
    """Empty is host and process."""
    health: str
    """`ADDRESS:PORT`; empty is no health port."""
    check: bool
    no_control: bool
    loop: str
    log_level: str
    log_format: str
    explain: bool
    origins: Mapping[str, str]
    """By name of an option: where its value comes from, for people."""


def parse(argv: Sequence[str], environment: Mapping[str, str]) -> Options:
    """The options of a command line; exits with 2 if it is wrong."""
    parser = _parser()
    given = vars(parser.parse_args(argv))
    values: dict[str, Any] = {}
    origins = {}
    for option in OPTIONS:
        field, name = option.field, option.variable
        if field in given:
            values[field], origins[field] = given[field], "command line"
        elif name in environment:
            values[field], origins[field] = _from(parser, name, option, environment), name
        else:
            values[field], origins[field] = option.read(option.default), "default"
    if not given["app"] and not values["check"]:
        parser.error("name the app whose tasks to run, such as shop.tasks:app")
    if values["check"] and not values["health"]:
        parser.error("--check asks the health port: give --health as the worker has it")
    return Options(app=given["app"], **values, origins=origins)


def _from(
    parser: argparse.ArgumentParser, name: str, option: "Option", environment: Mapping[str, str]
) -> Any:
    try:
        return option.read(environment[name])
    except argparse.ArgumentTypeError as error:
        parser.error(f"environment variable {name}: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="disque-trio worker",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    about = "the app whose tasks to run"
    parser.add_argument("app", metavar="MODULE[:APP]", nargs="?", default="", help=about)
    for title in ("jobs", "the process"):
        group = parser.add_argument_group(title)
        for option in OPTIONS:
            if option.group == title:
                option.add_to(group)
    return parser


# Kinds of arguments.


def _number(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word} is no whole number of 0 or more")
    return int(word)


def _prefetch(word: str) -> int | str:
    return AUTO if word == AUTO else _number(word)


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        seconds = -1.0
    if not (math.isfinite(seconds) and 0 <= seconds <= 1e6):
        raise argparse.ArgumentTypeError(f"{word} is no number of seconds, 0 or more")
    return seconds


def _names(text: str) -> tuple[str, ...]:
    names = tuple(word.strip() for word in text.split(",")) if text else ()
    if not all(name.removeprefix("!") for name in names):
        raise argparse.ArgumentTypeError(f"{text!r} has an empty name")
    return names


def _one_of(words: Sequence[str]) -> Callable[[str], str]:
    def read(word: str) -> str:
        if word not in words:
            raise argparse.ArgumentTypeError(f"{word} is none of {', '.join(words)}")
        return word

    return read


def _name(word: str) -> str:
    if word and not re.fullmatch(r"[!-~]{1,100}", word):
        raise argparse.ArgumentTypeError(
            f"{word!r} is no name: up to 100 ASCII characters without spaces"
        )
    return word


def _endpoint(word: str) -> str:
    host, _, number = word.rpartition(":")
    if word and not (host and number.isdecimal() and int(number) < 65536):
        raise argparse.ArgumentTypeError(
            f"{word!r} is no address and port: 127.0.0.1:8080 or [::1]:8080"
        )
    return word


def endpoint(word: str) -> tuple[str, int]:
    """Host and port of `ADDRESS:PORT`."""
    host, _, number = word.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(number)


def _is_set(word: str) -> bool:
    if word not in {"", "0", "1"}:
        raise argparse.ArgumentTypeError(f"{word} is neither 1 nor 0")
    return word == "1"


# The options.


@attrs.frozen
class Option:
    """An option; without a metavar it has no value."""

    group: str
    name: str
    default: str
    read: Callable[[str], Any]
    about: str
    metavar: str = ""
    short: str = ""

    @property
    def field(self) -> str:
        """Its name in `Options`."""
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return VARIABLES.get(self.name, PREFIX + self.field.upper())

    def add_to(self, group: argparse._ArgumentGroup) -> None:
        """Add it to a parser's group."""
        names = [each for each in (self.short, f"--{self.name}") if each]
        if self.metavar:
            group.add_argument(*names, metavar=self.metavar, type=self.read, help=self.about)
        else:
            group.add_argument(*names, action="store_true", help=self.about)


VARIABLES: Final = {"url": "DISQUE_URL"}
OPTIONS: Final = (
    Option(
        "jobs",
        "queues",
        "",
        _names,
        "only these, in this order: mail,video; by shares: mail=3,video=1; !low is all but low "
        "(all queues of the tasks, in turn)",
        "NAMES",
        "-Q",
    ),
    Option("jobs", "concurrency", "10", count, "how many run at the same time (10)", "N", "-c"),
    Option(
        "jobs",
        "prefetch",
        AUTO,
        _prefetch,
        "how many more of each queue are held; auto: those of the next 250 ms (auto)",
        "N",
    ),
    Option("jobs", "threads", "16", count, "threads for tasks that are no coroutines (16)", "N"),
    Option("jobs", "max-jobs", "0", _number, "end with 75 after so many jobs (0: never)", "N"),
    Option("jobs", "burst", "0", _is_set, "end when the queues are empty"),
    Option("the process", "url", "", str, "nodes: disque://host:port,host:port (the app's)", "URL"),
    Option("the process", "processes", "1", count, "how many worker processes (1)", "N", "-p"),
    Option(
        "the process",
        "drain",
        "25",
        _seconds,
        "how long jobs may run on when it stops (25)",
        "SECONDS",
    ),
    Option(
        "the process",
        "abort",
        "3",
        _seconds,
        "how long cancelled jobs may take to end (3)",
        "SECONDS",
    ),
    Option("the process", "name", "", _name, "what others call it (host and process)", "NAME"),
    Option("the process", "health", "", _endpoint, "answer HTTP here", "ADDRESS:PORT"),
    Option("the process", "check", "0", _is_set, "ask --health of a running worker, and end"),
    Option("the process", "no-control", "0", _is_set, "stay out of `disque-trio workers`"),
    Option("the process", "loop", "asyncio", _one_of(LOOPS), "asyncio or trio (asyncio)", "LOOP"),
    Option(
        "the process",
        "log-level",
        "info",
        _one_of(LEVELS),
        "debug, info, warning or error (info)",
        "LEVEL",
    ),
    Option(
        "the process",
        "log-format",
        "human",
        _one_of(FORMATS),
        "human, or json: one object a line (human)",
        "FORMAT",
    ),
    Option(
        "the process",
        "explain",
        "0",
        _is_set,
        "print all options and where they come from, and end",
    ),
)
"""In the order of the help."""
