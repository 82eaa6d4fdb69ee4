"""The manual: a page of Markdown for each command, for `help` and docs/commands.md.

Lines that begin with four spaces are a dialogue, which a test plays: `> ` is what is typed, `$1`
the id of the job that was added last, `…` any text, and alone on its line any further lines.
`{options of ADDJOB}` stands for their table, and so on.
"""

from collections.abc import Iterable
from importlib.resources import files
from typing import Final

from disque_trio.statemachine.commandoptions import GETJOB, JSCAN, LIMIT, QSCAN, QSTAT
from disque_trio.statemachine.joboptions import OPTIONS, Option

_OPTIONS: Final = {
    "ADDJOB": OPTIONS,
    "GETJOB": GETJOB.values(),
    "JSCAN": JSCAN.values(),
    "LIMIT": LIMIT.values(),
    "QSCAN": QSCAN.values(),
    "QSTAT": QSTAT.values(),
}


def text(name: str) -> str:
    """The page of the command with this lower-case name. Raises FileNotFoundError if it has
    none."""
    page = files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8")
    for command, options in _OPTIONS.items():
        page = page.replace(f"{{options of {command}}}\n", _table(options))
    return page


def _table(options: Iterable[Option]) -> str:
    rows = [f"| {_form(each)} | {each.default} | {each.meaning} |\n" for each in options]
    return "".join(["| option | default | meaning |\n|---|---|---|\n", *rows])


def _form(option: Option) -> str:
    """A bar would end a cell of the table."""
    return option.form.replace("|", r"\|")
