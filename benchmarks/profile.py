"""`python -m benchmarks profile`: where the processor's time of our nodes goes, case by case.

py-spy looks at the nodes while the load runs, without what comes before it, such as filling a
queue. How much of the time is the kernel's, the system says; py-spy tells which of Python's
functions had the rest, with what they call in C. What of a case is dear, and why it is no cheaper,
can be seen here and need not be believed.
"""

import argparse
import collections
import json
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import attrs
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import contenders, page
from benchmarks.case import CPU, Case, Demand, Sample
from benchmarks.cases import CASES, TARGETS
from benchmarks.profilers import Frame, Profilers, path
from benchmarks.tool import BenchmarkError

UNUSABLE: Final = 2
_NAMED: Final = 4
"""Functions of each case that are named."""
_WIDE: Final = 160
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
    """What came of a case."""

    case: Case
    cpu: float
    """Microseconds for each operation while it was looked at, which takes some of them itself."""
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
    """Where a file belongs."""
    for part, patterns in PARTS.items():
        if any(fnmatch(file, pattern) for pattern in patterns):
            return part
    return ELSEWHERE


def take(case: Case, size: float) -> Profile:
    """Run a case once, and look."""
    with (
        tempfile.TemporaryDirectory(prefix="profile-") as name,
        closing(Profilers()) as profilers,
        contenders.running(contenders.ours(), case.place, Path(name)) as subject,
    ):
        sample = case.measure(attrs.evolve(subject, profilers=profilers), size)
        return profile_of(case, sample, profilers)


def profile_of(case: Case, sample: Sample, profilers: Profilers) -> Profile:
    """Counts become shares."""
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
    """One line for each."""
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
    """All that is known, for machines."""
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
    """Those in which we are to be as good as the original."""
    names = collections.OrderedDict.fromkeys(
        target.case for target in TARGETS if target.demand is Demand.RATIO
    )
    return [case for case in CASES if case.name in names and _can_be_seen(case)]


def _can_be_seen(case: Case) -> bool:
    return case.place.nodes > 0 and CPU in case.figures


def _chosen(text: str) -> list[Case]:
    words = [word for word in text.split(",") if word]
    for word in words:
        if not any(fnmatch(case.name, word) and _can_be_seen(case) for case in CASES):
            raise BenchmarkError(f"--only {word}: there is no such case with a figure {CPU.unit}")
    return [
        case
        for case in CASES
        if _can_be_seen(case) and any(fnmatch(case.name, word) for word in words)
    ]


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks profile", description=__doc__)
    parser.add_argument(
        "--only", default="", metavar="CASE,CASE", help="these cases; three-* means all that fit"
    )
    parser.add_argument("--size", type=float, default=1.0, metavar="X", help="of samples (1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every function there")
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="put the table there, between its marks"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Look, and print; the exit code."""
    options = _options(arguments)
    console = Console()
    if not console.is_terminal:
        console.width = _WIDE
    try:
        path()
        cases = _chosen(options.only) if options.only else _wanted()
        if options.page is not None:
            page.check(options.page, MARKS)
        profiles = [take(case, options.size) for case in track(cases, console=console)]
    except BenchmarkError as error:
        console.print(f"cannot measure: {error}", style="red", highlight=False, markup=False)
        return UNUSABLE
    made = table(profiles)
    console.print(made)
    if options.json is not None:
        options.json.write_text(json.dumps(as_json(profiles), indent=1) + "\n", "utf-8")
    if options.page is not None:
        page.put(options.page, page.markdown(made), MARKS)
    return 0
