"""The simulator's commands: `disque-trio sim` (docs/simulation.md)."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from disque_trio.cli import frame
from disque_trio.cli.sim import exploring, judging, pinning, shrinking, single, sweep
from disque_trio.cli.sim import options as of
from disque_trio.pipeline.errors import PipelineError
from disque_trio.pipeline.location import path_in
from disque_trio.terminal.options import Command, Family, UsageError

Options = TypeVar("Options", bound=of.Options)

_EPILOG: Final = """\
FILE is a scenario (.toml), a plan (.json), or a trace (.jsonl, .arrow, .parquet).

exit status:
  0    every property held
  1    a property was violated
  2    usage: a bad option, a bad file, or an output that cannot be written
  3    the result says nothing: no job was delivered; or, with --require-marks, a sweep never hit
       a mark that a scenario expects sometimes; or a trace ends before its run, without violation
  130  interrupted by Ctrl-C; finished seeds of a sweep are kept
  143  terminated by SIGTERM; finished seeds of a sweep are kept

docs/simulation.md describes scenarios, properties and marks.
"""


def main(arguments: Sequence[str]) -> int:
    """Run a command. Return the exit status, as described in `--help`."""
    return frame.run("sim", PROGRAM, arguments)


def _located(command: Callable[[Options], int]) -> Callable[[Options], int]:
    """The command with paths in place of addresses of files; of other addresses, a refusal."""

    def called(options: Options) -> int:
        try:
            return command(options.located(path_in))
        except PipelineError as error:
            raise UsageError(str(error)) from None

    return called


PROGRAM: Final = Family(
    about="Run a cluster in simulated time, with faults, and check its history.",
    epilog=_EPILOG,
    commands={
        "run": Command(
            record=of.Run,
            run=_located(single.run),
            about="Run one seed of a scenario, or run plans.",
            more="A failure prints the property, the command that repeats it, and the last events "
            "of the job.",
        ),
        "judge": Command(
            record=of.Judge,
            run=_located(judging.judge),
            about="Check the histories of clients of a cluster.",
            more="A history is written by the client library's Recorder, by 'disque-trio worker "
            "--history', by 'sim run --history', or by any client (docs/histories.md). It has "
            "no state of nodes. Promises that hold only in calm are checked if the faults are "
            "known.",
        ),
        "sweep": Command(
            record=of.Sweep,
            run=_located(sweep.sweep),
            about="Run many seeds of scenarios.",
            more="Failures are printed as they occur. With --out or --lake, an interrupted sweep "
            "continues where it stopped, if neither the code nor the scenario has changed.",
        ),
        "replay": Command(
            record=of.Replay,
            run=_located(single.replay),
            about="Run a plan or a trace again.",
            more="The rows of a trace are checked as recorded. If the run was simulated, its plan "
            "is run again, and the first row that differs is shown. Traces of several live nodes "
            "are checked together.",
        ),
        "shrink": Command(
            record=of.Shrink,
            run=_located(shrinking.shrink),
            about="Reduce a failing seed to a smaller plan that fails in the same way.",
            more="Whole families of faults are removed first, then faults, adds and consumers, "
            "then nodes; then times are shortened. The plan is saved; run it with 'sim run'.",
        ),
        "expand": Command(
            record=of.Expand,
            run=_located(single.expand_),
            about="Show the plan of a scenario and a seed.",
        ),
        "draw": Command(
            record=of.Draw,
            run=_located(single.draw),
            about="Draw a run as one HTML file.",
            more="A trace is drawn without a new run.",
        ),
        "explore": Command(
            record=of.Explore,
            run=_located(exploring.explore),
            about="Visit every state of small scopes: all orders of messages, timers and faults.",
            more="Reports for each scope whether it is complete, or how much was explored. A "
            "violation is written as steps, which --replay repeats.",
        ),
        "pin": Command(
            record=of.Pin,
            run=_located(pinning.pin),
            about="Save a run as a plan with a note.",
            more="The run of a seed changes with the scenario and the code; a plan does not "
            "change. Shrink a failing plan first ('sim shrink'). Run pins with 'sim run "
            "pins/*.json'.",
        ),
    },
)
