"""The figures of a page of the documentation: tables between two marks, and the picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.table import Table
from rich.text import Text

from benchmarks.report import Report
from benchmarks.tool import BenchmarkError

BEGIN: Final = "<!-- figures -->\n"
END: Final = "<!-- end of figures -->\n"


def check(page: Path) -> None:
    """BenchmarkError unless there is a place for figures."""
    text = page.read_text("utf-8") if page.exists() else ""
    if not 0 <= text.find(BEGIN) < text.find(END):
        raise BenchmarkError(f"{page} has no lines {BEGIN.strip()} and {END.strip()}")


def fill(page: Path, report: Report, tables: Sequence[Table]) -> None:
    """Put a report's tables in place of those that stand there."""
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    figures = "\n\n".join([_about(report), *map(markdown, tables)])
    page.write_text(f"{before}{BEGIN}\n{figures}\n\n{END}{after}", "utf-8")


def _about(report: Report) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    machine = report.machine
    return (
        f"{report.date} UTC, commit `{report.commit}`: {versions}. {machine['processor']}, "
        f"{machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}, "
        f"Python {machine['python']}."
    )


def markdown(table: Table) -> str:
    """The same cells, without colours."""
    columns = [[str(column.header), *map(str, column.cells)] for column in table.columns]
    head, *rows = (
        [Text.from_markup(cell).plain for cell in row] for row in zip(*columns, strict=True)
    )
    rule = ["---:" if column.justify == "right" else "---" for column in table.columns]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))
