"""`disque-trio explain`: what a job survives, by rules and by trials (docs/explain.md)."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.progress import track

from disque_trio.cli import frame
from disque_trio.cli.explain.asking import ask
from disque_trio.cli.explain.options import Options
from disque_trio.cli.explain.words import show
from disque_trio.cli.sim.report import errors, out
from disque_trio.client.errors import DisqueError
from disque_trio.explain.facts import Facts
from disque_trio.explain.families import MOST_NODES
from disque_trio.explain.holders import Holder
from disque_trio.explain.job_request import InvalidRequestError, JobRequest, read
from disque_trio.explain.report import report
from disque_trio.explain.rules import answers
from disque_trio.explain.trials import Trial, run
from disque_trio.terminal.options import Command, UsageError
from disque_trio.terminal.output import say_json

_EPILOG: Final = """\
examples:
  disque-trio explain ADDJOB mail body 0 RETRY 60
  disque-trio explain --nodes 5 --journal everysec --trials 20 ADDJOB mail body 0 REPLICATE 2
  disque-trio explain -p 7711 ADDJOB mail body 0     for the cluster of this node
  disque-trio explain --queue mail                   for jobs of the queue, at 127.0.0.1:7711

exit status: 0 done; 1 the job is refused, or rules and trials disagree; 2 wrong usage, or no
answer; 130 interrupted by Ctrl-C
"""


def main(argv: Sequence[str]) -> int:
    """Explain a job. Return the exit status, as described in `--help`."""
    return frame.run("explain", PROGRAM, argv)


def _main(options: Options) -> int:
    try:
        return _explain(options, *_subject(options))
    except (InvalidRequestError, DisqueError) as error:
        raise UsageError(str(error)) from error


def _subject(options: Options) -> tuple[JobRequest, Facts, str, tuple[Holder, ...]]:
    """The job, its cluster, how the job was found, and who holds it."""
    if (facts := options.facts) is not None:
        return read(options.words, facts), facts, "", ()
    cluster = ask(options)
    if options.job is not None:
        request, holders = cluster.job(options.job)
        is_queued = any(each.state == "queued" for each in holders)
        return request, cluster.facts, cluster.waiting(request.queue) if is_queued else "", holders
    if options.queue is not None:
        request, heading = cluster.queue(options.queue)
        waiting = cluster.waiting(options.queue)
        return request, cluster.facts, "\n".join(filter(None, (heading, waiting))), ()
    return read(options.words, cluster.facts), cluster.facts, "", ()


def _explain(
    options: Options, request: JobRequest, facts: Facts, heading: str, holders: tuple[Holder, ...]
) -> int:
    found = report(request, facts, list(_trials(options, request, facts)), holders)
    if options.is_json:
        say_json(found.as_plain(), indent=2)
    else:
        show(out(), found, heading)
    return 1 if found.refusal or found.disagreements else 0


def _trials(options: Options, request: JobRequest, facts: Facts) -> Iterator[Trial]:
    """One for each family and seed. On a terminal a bar shows how far they are."""
    if options.trials and request.copies > MOST_NODES:
        raise UsageError(
            f"trials have at most {MOST_NODES} nodes, and REPLICATE is {request.copies}: "
            "omit --trials"
        )
    families = [answer.family for answer in answers(request, facts)]
    every = [(family, seed) for seed in range(options.trials) for family in families]
    console = errors()
    for family, seed in track(
        every, "trials", console=console, transient=True, disable=not console.is_terminal
    ):
        yield run(family, request, facts, seed)


PROGRAM: Final = Command(
    record=Options,
    run=_main,
    about="""\
Shows which failures a job survives (crashes of nodes and workers, power cuts, partitions), when it
is delivered twice, and how late its delivery may be. The answers follow the rules of
docs/guarantees.md. --trials runs the simulator with the same faults, and compares the results.""",
    epilog=_EPILOG,
    usage="disque-trio explain [options] ADDJOB queue body ms-timeout [options of the job]",
    has_host=True,
)
