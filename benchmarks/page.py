"""Writes results into a page of the documentation, between two marks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.table import Table
from rich.text import Text

from benchmarks.report import Report
from benchmarks.tool import BenchmarkError

Marks = tuple[str, str]
"""The lines before and after the results."""
FIGURES: Final[Marks] = ("<!-- figures -->\n", "<!-- end of figures -->\n")


def check(page: Path, marks: Marks = FIGURES) -> None:
    """Raise BenchmarkError unless the page has the marks."""
    text = page.read_text("utf-8") if page.exists() else ""
    begin, end = marks
    if not 0 <= text.find(begin) < text.find(end):
        raise BenchmarkError(f"{page} has no lines {begin.strip()} and {end.strip()}")


def put(page: Path, text: str, marks: Marks) -> None:
    """Replace the text between the marks."""
    begin, end = marks
    before, _, rest = page.read_text("utf-8").partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n{text}\n\n{end}{after}", "utf-8")


def fill(page: Path, report: Report, tables: Sequence[Table]) -> None:
    """Replace the tables of a report."""
    put(page, "\n\n".join([_about(report), *map(markdown, tables)]), FIGURES)


def _about(report: Report) -> str:
    machine = report.machine
    return (
        f"{report.date} UTC, commit `{report.commit}`: {report.compared}. {machine['processor']}, "
        f"{machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}, "
        f"Python {machine['python']}."
    )


def markdown(table: Table) -> str:
    """The table in Markdown, without colours."""
    columns = [[str(column.header), *map(str, column.cells)] for column in table.columns]
    head, *rows = (
        [Text.from_markup(cell).plain for cell in row] for row in zip(*columns, strict=True)
    )
    rule = ["---:" if column.justify == "right" else "---" for column in table.columns]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))
