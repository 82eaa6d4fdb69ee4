"""`python -m benchmarks profile`: the CPU time of our nodes by function, case by case.

py-spy samples the nodes while the load runs, without the preparation, such as filling a queue. The
share of the kernel comes from the system; py-spy shows which Python functions used the rest, with
what they call in C.
"""

import argparse
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import attrs
from rich.progress import track
from rich.table import Table

from benchmarks import contenders, output, page
from benchmarks.case import CPU, Case, Demand, Sample
from benchmarks.cases import CASES, TARGETS
from benchmarks.profilers import Frame, Profilers, path
from benchmarks.tool import BenchmarkError

_NAMED: Final = 4
"""Functions of each case that are named."""
MARKS: Final = ("<!-- profiles -->\n", "<!-- end of profiles -->\n")
PARTS: Final[dict[str, Sequence[str]]] = {
    "sockets": ("net/*", "bus.py", "trio/*"),
    "driver": ("node.py", "driver/*", "serving/process.py", "ports.py"),
    "wire": ("wire/*",),
    "storage": ("storage/*",),
    "machine": ("statemachine/*",),
}
"""Parts of a node by their files."""
ELSEWHERE: Final = "else"


@attrs.frozen
class Profile:
    """The profile of a case."""

    case: Case
    cpu: float
    """Microseconds for each operation, with the cost of being sampled."""
    kernel: float
    """Its share, from 0 to 1."""
    functions: dict[Frame, float]
    """Shares of the rest of the whole, the largest first."""

    @property
    def parts(self) -> dict[str, float]:
        """Shares of the parts of a node."""
        found: dict[str, float] = dict.fromkeys([*PARTS, ELSEWHERE], 0.0)
        for frame, share in self.functions.items():
            found[part_of(frame.file)] += share
        return found


def part_of(file: str) -> str:
    """The part that a file belongs to."""
    for part, patterns in PARTS.items():
        if any(fnmatch(file, pattern) for pattern in patterns):
            return part
    return ELSEWHERE


def take(case: Case, size: float) -> Profile:
    """Run a case once with profilers."""
    with (
        tempfile.TemporaryDirectory(prefix="profile-") as name,
        closing(Profilers()) as profilers,
        contenders.running(contenders.ours(), case.place, Path(name)) as subject,
    ):
        sample = case.measure(attrs.evolve(subject, profilers=profilers), size)
        return profile_of(case, sample, profilers)


def profile_of(case: Case, sample: Sample, profilers: Profilers) -> Profile:
    """Compute shares from the profilers' counts."""
    whole = sum(profilers.counts.values())
    ticks = profilers.user + profilers.kernel
    if not whole or not ticks:
        raise BenchmarkError(f"{case.name}: it was over before anything was seen; a larger --size?")
    counts = profilers.counts.most_common()
    return Profile(
        case=case,
        cpu=sample[CPU.name],
        kernel=profilers.kernel / ticks,
        functions={frame: count / whole * profilers.user / ticks for frame, count in counts},
    )


def table(profiles: Iterable[Profile]) -> Table:
    """One line for each profile."""
    made = Table("case", title="where the processor's time goes")
    for head in ("CPU µs/op", "kernel", *PARTS, ELSEWHERE):
        made.add_column(head, justify="right")
    made.add_column("the dearest functions")
    for each in profiles:
        shares = (each.kernel, *each.parts.values())
        dearest = ", ".join(
            f"{frame.name} {share:.0%}" for frame, share in list(each.functions.items())[:_NAMED]
        )
        made.add_row(
            each.case.title, f"{each.cpu:.3g}", *(f"{share:.0%}" for share in shares), dearest
        )
    return made


def as_json(profiles: Iterable[Profile]) -> list[dict[str, object]]:
    """The profiles with all functions."""
    return [
        {
            "case": each.case.name,
            "cpu_us": each.cpu,
            "kernel": each.kernel,
            "parts": each.parts,
            "functions": [
                {"name": frame.name, "file": frame.file, "share": share}
                for frame, share in each.functions.items()
            ],
        }
        for each in profiles
    ]


def _wanted() -> list[Case]:
    """The cases with a target relative to another server."""
    names = {target.case for target in TARGETS if target.demand is Demand.RATIO}
    return [case for case in CASES if case.name in names and _can_be_seen(case)]


def _can_be_seen(case: Case) -> bool:
    return case.place.nodes > 0 and CPU in case.figures


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks profile", description=__doc__)
    output.add_only(parser)
    parser.add_argument("--size", type=float, default=1.0, metavar="X", help="of samples (1)")
    output.add_json(parser, "write every function there")
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="put the table there, between its marks"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Profile the cases, and print. Returns the exit code."""
    options = _options(arguments)
    console = output.console()
    try:
        path()
        cases = _wanted()
        if options.only:
            seen = [case for case in CASES if _can_be_seen(case)]
            cases = output.only(options.only, seen, f"case with a figure {CPU.unit}")
        if options.page is not None:
            page.check(options.page, MARKS)
        profiles = [take(case, options.size) for case in track(cases, console=console)]
    except BenchmarkError as error:
        return output.refuse(console, error)
    made = table(profiles)
    console.print(made)
    output.write_json(options.json, as_json(profiles))
    if options.page is not None:
        page.put(options.page, page.markdown(made), MARKS)
    return 0
