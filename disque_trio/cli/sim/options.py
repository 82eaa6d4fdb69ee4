"""The options of `disque-trio sim`."""

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Final, Self

import attrs

from disque_trio.cli.frame import Family, add_json, add_settings, count, share
from disque_trio.sim.scenarios.vocabulary import ENGINES

_EPILOG: Final = """\
A FILE is a scenario (.toml), a plan (.json), or a trace (.jsonl, .arrow, .parquet).

exit status:
  0    every property held
  1    a property was violated
  2    usage: a bad option, a bad file, an output that cannot be written
  3    nothing was tested: no job was delivered, or a sweep never hit one of the marks that a
       scenario expects sometimes
  130  interrupted by Ctrl-C; what a sweep had finished is kept

docs/simulation.md tells how to write scenarios, and what the properties and marks mean.
"""
_SEEDS: Final = re.compile(r"(\d+)(?::(\d+))?")


@attrs.frozen(kw_only=True)
class Options:
    """One command line."""

    command: str
    files: tuple[str, ...]
    seed: int | None = None
    seeds: range | str = "ci"
    """A range, or the name of one that scenarios have: ci or nightly."""
    engine: str = "heap"
    html: str | None = None
    trace: str | None = None
    is_json: bool = False
    jobs: int | None = None
    """Processes; None for one for each processor."""
    spark: str | None = None
    spark_settings: tuple[tuple[str, str], ...] = attrs.field(default=(), converter=tuple)
    lake: str | None = None
    trace_share: float = 0.0
    most_failures: int | None = None
    out: str | None = None
    limit_s: int = 0
    budget: int = 0
    property: str | None = None
    note: str = ""
    recheck: float = 0.0

    def subject(self) -> str:
        """The first file."""
        return self.files[0]

    def located(self, path_in: Callable[[str], str]) -> Self:
        """The same with the path that is in each address of a file."""
        html, trace, out = (
            text if text is None else path_in(text) for text in (self.html, self.trace, self.out)
        )
        files = tuple(map(path_in, self.files))
        return attrs.evolve(self, files=files, html=html, trace=trace, out=out)


def parse(arguments: Sequence[str]) -> Options:
    """The options, or SystemExit after a message or help."""
    found = _family().parse(arguments)
    facts = vars(found)
    files = facts.pop("files")
    known = {name: value for name, value in facts.items() if value is not None}
    return Options(files=(files,) if isinstance(files, str) else tuple(files), **known)


def _family() -> Family:
    family = Family(
        "sim", "Run a cluster in simulated time, through faults, and judge what happens.", _EPILOG
    )
    _run(family)
    _sweep(family)
    _replay(family)
    _shrink(family)
    _expand(family)
    _draw(family)
    _pin(family)
    return family


def _run(family: Family) -> None:
    parser = family.command(
        "run",
        "Run one seed of a scenario, or plans.",
        "A failure prints the property, how to run it again, and the last events of the job.",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="a scenario, or a plan")
    _add_seed(parser)
    _add_engine(parser)
    parser.add_argument("--html", metavar="OUT", help="draw the run into this HTML file")
    parser.add_argument(
        "--trace", metavar="OUT", help="write every row to this .jsonl, .arrow or .parquet file"
    )
    add_json(parser)


def _sweep(family: Family) -> None:
    parser = family.command(
        "sweep",
        "Run many seeds of scenarios.",
        "Failures are told as they come. With --out "
        "or --lake, a sweep that was interrupted goes on where it stopped, as long as neither the "
        "code nor the scenario has changed.",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="scenarios")
    parser.add_argument(
        "--seeds",
        type=_seeds,
        default="ci",
        metavar="A:B",
        help="seeds A to B-1, so 0:4 are four; N is seed N alone; 'ci' or 'nightly' are as many as "
        "the scenario says (ci)",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--jobs", type=count, metavar="N", help="how many processes (one for each processor)"
    )
    where.add_argument(
        "--spark", metavar="MASTER", help="run on Spark: local[*], or spark://HOST:PORT"
    )
    add_settings(parser)
    _add_engine(parser)
    parser.add_argument(
        "--out", metavar="DIR", help="keep results.jsonl and the plans of failures in here"
    )
    parser.add_argument(
        "--lake", metavar="DIR",
        help="keep results, and the rows of failures, as Parquet in this lake; on a cluster all "
        "machines must have it under this name",
    )  # fmt: skip
    parser.add_argument(
        "--trace-share", type=share, metavar="SHARE",
        help="share of the seeds that pass whose rows go into the lake, too (0)",
    )  # fmt: skip
    parser.add_argument(
        "--max-failures", dest="most_failures", type=count, metavar="N",
        help="stop after so many failures",
    )  # fmt: skip
    parser.add_argument(
        "--recheck", type=share, default=0.05, metavar="SHARE",
        help="share of the seeds that are run twice, to compare their digests (0.05)",
    )  # fmt: skip
    parser.add_argument(
        "--limit", dest="limit_s", type=count, default=600, metavar="SECONDS",
        help="a seed that takes longer has failed (600)",
    )  # fmt: skip
    add_json(parser)


def _replay(family: Family) -> None:
    parser = family.command(
        "replay",
        "Run a plan or a trace again.",
        "A trace is judged as it stands. If it is of a simulated run, its plan is run again, and "
        "the first row that differs is shown. Traces of several live nodes are judged together.",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="a plan, a trace, or live traces")
    _add_seed(parser)
    _add_engine(parser)
    parser.add_argument("--html", metavar="OUT", help="draw it into this HTML file")
    add_json(parser)


def _shrink(family: Family) -> None:
    parser = family.command(
        "shrink",
        "Cut a failing seed down to a smallest plan that fails in the same way.",
        "Whole families of faults go first, then faults, adds and consumers, then nodes; then "
        "times are shortened. The plan is saved, to be run with 'sim run'.",
    )
    parser.add_argument("files", metavar="FILE", help="a scenario, or a plan")
    _add_seed(parser)
    parser.add_argument("-o", "--out", metavar="PLAN.json", help="where to (NAME-SEED.json)")
    parser.add_argument(
        "--property", metavar="NAME", help="of several violations, this one, such as L1 or DX"
    )
    parser.add_argument(
        "--budget", type=count, default=2_000, metavar="N", help="at most so many runs (2000)"
    )


def _expand(family: Family) -> None:
    parser = family.command("expand", "Show the plan that a scenario comes to for a seed.")
    parser.add_argument("files", metavar="FILE", help="a scenario")
    _add_seed(parser)
    parser.add_argument("-o", "--out", metavar="PLAN.json", help="write it to this file")


def _draw(family: Family) -> None:
    parser = family.command(
        "draw", "Draw a run as one HTML file.", "A trace is drawn without running it."
    )
    parser.add_argument("files", metavar="FILE", help="a scenario, a plan, or a trace")
    _add_seed(parser)
    _add_engine(parser)
    parser.add_argument(
        "-o", "--out", dest="html", metavar="OUT.html", help="where to (NAME-SEED.html)"
    )


def _pin(family: Family) -> None:
    parser = family.command(
        "pin",
        "Keep a run for good, as a plan with a note.",
        "What a seed comes to changes with the scenario and the code; a plan stays as it is. "
        "'sim shrink' makes a failing one small first. Run pins with 'sim run pins/*.json'.",
    )
    parser.add_argument("files", metavar="FILE", help="a scenario, or a plan")
    _add_seed(parser)
    parser.add_argument("--note", required=True, metavar="TEXT", help="what it has found")
    parser.add_argument(
        "-o", "--out", metavar="PLAN.json", help="where to (pins/NAME-SEED.json beside the file)"
    )


def _add_seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=_seed, metavar="N", help="which seed of a scenario (0)")


def _add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default="heap",
        help="heap: whole nodes, driven by events, fast; trio: the same, each in a task; tcp: real "
        "processes in real time (heap)",
    )


def _seed(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word} is no seed: a whole number of 0 or more")
    return int(word)


def _seeds(word: str) -> range | str:
    return word if word in {"ci", "nightly"} else seeds_from(word)


def seeds_from(word: str) -> range:
    """A range in the form `A:B`, or one seed."""
    match = _SEEDS.fullmatch(word)
    if match is None:
        raise argparse.ArgumentTypeError(f"{word} is no range of seeds, such as 0:1000")
    first = int(match[1])
    after = int(match[2]) if match[2] else first + 1
    if after <= first:
        raise argparse.ArgumentTypeError(f"{word} has no seeds: B stands behind the last")
    return range(first, after)
