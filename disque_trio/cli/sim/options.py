"""The options of `disque-trio sim`."""

import re
from collections.abc import Callable
from typing import Any, Final, Self

import attrs

from disque_trio.cli.frame import json_switch, spark_settings
from disque_trio.sim.scenarios.vocabulary import ENGINES
from disque_trio.terminal.options import (
    COUNT,
    DIR,
    FILE,
    SHARE,
    Kind,
    argument,
    one_of,
    option,
    seconds,
    switch,
    text,
    whole,
)

_SEEDS: Final = re.compile(r"(\d+)(?::(\d+))?")
_PATHS: Final = ("html", "trace", "history", "out", "replay")


def _seeds(word: str) -> range | str:
    if word in {"ci", "nightly"}:
        return word
    match = _SEEDS.fullmatch(word)
    first, last = (int(match[1]), int(match[2] or int(match[1]) + 1)) if match else (0, 0)
    if last <= first:
        raise ValueError
    return range(first, last)


SEEDS: Final = Kind("a range of seeds, such as 0:1000, or ci or nightly", _seeds, "A:B")
_PLAN: Final = text("PLAN.json")


def _file(about: str, nargs: int | str | None = None) -> Any:
    return argument(FILE, about, nargs)


def _seed() -> Any:
    return option("--seed", whole(), "which seed of a scenario (0)")


def _engine() -> Any:
    about = "heap: whole nodes, driven by events, fast; trio: the same, each in a task; tcp: real "
    return option("--engine", one_of(*ENGINES), f"{about}processes in real time", "heap")


def _html(about: str) -> Any:
    return option("--html", text("OUT"), about)


@attrs.frozen(kw_only=True)
class Options:
    """One command line."""

    files: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """The first file; those that are shipped have no name."""
        return self.files[0] if self.files else "sim"

    def located(self, path_in: Callable[[str], str]) -> Self:
        """The same with the path that is in each address of a file."""
        changes: dict[str, Any] = {"files": tuple(map(path_in, self.files))}
        for name in _PATHS:
            if (path := getattr(self, name, None)) is not None:
                changes[name] = path_in(path)
        return attrs.evolve(self, **changes)


@attrs.frozen(kw_only=True)
class Replay(Options):
    """`sim replay`."""

    files: tuple[str, ...] = _file("a plan, a trace, or live traces", "+")
    seed: int | None = _seed()
    engine: str = _engine()
    html: str | None = _html("draw it into this HTML file")
    is_json: bool = json_switch()
    trace: str | None = None
    history: str | None = None


@attrs.frozen(kw_only=True)
class Run(Replay):
    """`sim run`."""

    files: tuple[str, ...] = _file("a scenario, or a plan", "+")
    html: str | None = _html("draw the run into this HTML file")
    trace: str | None = option(
        "--trace", text("OUT"), "write every row to this .jsonl, .arrow or .parquet file"
    )
    history: str | None = option(
        "--history", text("OUT"), "write what clients see to this file, for 'sim judge'; the run "
        "goes on for 40 s more, so that a client waits in vain for a job that is lost",
    )  # fmt: skip


@attrs.frozen(kw_only=True)
class Judge(Options):
    """`sim judge`."""

    files: tuple[str, ...] = _file("histories of the clients of one cluster", "+")
    faults: str | None = option(
        "--faults", one_of("known", "unknown"),
        "known: the cluster had no other faults than those in the files (as the files say)",
    )  # fmt: skip
    are_others: bool = switch(
        "--others", "clients that were not recorded used the same queues; less is judged"
    )
    settle: float = option(
        "--settle", seconds(), "how long after a fault the cluster is not calm yet", 30.0
    )
    slack: float = option(
        "--slack", seconds(), "how far messages in a calm cluster may be behind", 2.0
    )
    skew: float = option("--skew", seconds(), "how far the clocks of machines may differ", 0.05)
    is_json: bool = json_switch()


@attrs.frozen(kw_only=True)
class Sweep(Options):
    """`sim sweep`."""

    files: tuple[str, ...] = _file("scenarios", "+")
    seeds: range | str = option(
        "--seeds", SEEDS,
        "seeds A to B-1, so 0:4 are four; N is seed N alone; 'ci' or 'nightly' are as many as the "
        "scenario says", "ci",
    )  # fmt: skip
    jobs: int | None = option(
        "--jobs", COUNT, "how many processes (one for each processor)", excludes="where"
    )
    spark: str | None = option(
        "--spark", text("MASTER"), "run on Spark: local[*], or spark://HOST:PORT", excludes="where"
    )
    spark_settings: tuple[tuple[str, str], ...] = spark_settings()
    engine: str = _engine()
    out: str | None = option("--out", DIR, "keep results.jsonl and the plans of failures in here")
    lake: str | None = option(
        "--lake", DIR,
        "keep results, and the rows of failures, as Parquet in this lake; on a cluster all "
        "machines must have it under this name",
    )  # fmt: skip
    trace_share: float = option(
        "--trace-share", SHARE,
        "share of the seeds that pass whose rows go into the lake, too; of each scenario at least "
        "one", 0.0,
    )  # fmt: skip
    is_mark_required: bool = switch(
        "--require-marks", "exit with 3 if no seed has hit a mark that a scenario expects sometimes"
    )
    most_failures: int | None = option(
        "--max-failures", COUNT, "stop after this number of failures"
    )
    recheck: float = option(
        "--recheck", SHARE, "share of the seeds that are run twice, to compare their digests", 0.05
    )
    limit_s: int = option(
        "--limit", whole(1, what="number of seconds", metavar="SECONDS"),
        "a seed that takes longer has failed", 600,
    )  # fmt: skip
    is_guided: bool = switch(
        "--guided", "choose seeds by what earlier ones have shown; plans that show something new "
        "are kept and changed (docs/guided.md)",
    )  # fmt: skip
    corpus: str | None = option(
        "--corpus", DIR, "with --guided: the directory with the plans that are kept; the same "
        "command goes on from there",
    )  # fmt: skip
    minutes: int | None = option(
        "--minutes", COUNT, "with --guided: end after so much processor time of the runs (10)"
    )
    seed: int = option("--seed", whole(), "with --guided: which search", 0)
    is_compared: bool = switch(
        "--compare", "with --guided: give blind seeds the same time, and show both"
    )
    is_json: bool = json_switch()


@attrs.frozen(kw_only=True)
class Expand(Options):
    """`sim expand`."""

    files: tuple[str, ...] = _file("a scenario", 1)
    seed: int | None = _seed()
    out: str | None = option("-o --out", _PLAN, "write it to this file")


@attrs.frozen(kw_only=True)
class Shrink(Expand):
    """`sim shrink`."""

    files: tuple[str, ...] = _file("a scenario, or a plan", 1)
    out: str | None = option("-o --out", _PLAN, "where to (NAME-SEED.json)")
    property: str | None = option(
        "--property", text("NAME"), "of several violations, this one, such as L1 or DX"
    )
    budget: int = option("--budget", COUNT, "run this often at most", 2_000)


@attrs.frozen(kw_only=True)
class Draw(Options):
    """`sim draw`."""

    files: tuple[str, ...] = _file("a scenario, a plan, or a trace", 1)
    seed: int | None = _seed()
    engine: str = _engine()
    html: str | None = option("-o --out", text("OUT.html"), "where to (NAME-SEED.html)")


@attrs.frozen(kw_only=True)
class Pin(Expand):
    """`sim pin`."""

    files: tuple[str, ...] = _file("a scenario, or a plan", 1)
    note: str = option("--note", text("TEXT"), "what it has found", is_required=True)
    out: str | None = option("-o --out", _PLAN, "where to (pins/NAME-SEED.json beside the file)")


@attrs.frozen(kw_only=True)
class Explore(Options):
    """`sim explore`."""

    files: tuple[str, ...] = _file("shipped scopes by name, or .toml files (all shipped ones)", "*")
    lists: bool = switch("--list", "list the scopes instead, with what they are about")
    replay: str | None = option(
        "--replay", text("STEPS.json"), "play the steps of a violation instead"
    )
    html: str | None = _html("with --replay: draw it into this HTML file")
    late: int | None = option(
        "--late", whole(0), "how often a timer may run while something else could happen"
    )
    faults: int | None = option("--faults", whole(0), "how many faults may happen")
    seconds: int | None = option("--seconds", COUNT, "stop after so many seconds")
    states: int | None = option("--states", COUNT, "stop after so many states")
    out: str | None = option(
        "-o --out", text("STEPS.json"), "where to write the steps of a violation (SCOPE.json)"
    )
    is_json: bool = json_switch()
