"""Tables of the terminal as tables of a page."""

from rich.table import Table
from rich.text import Text


def markdown(table: Table) -> str:
    """The same cells, without colours."""
    columns = [[str(column.header), *map(str, column.cells)] for column in table.columns]
    head, *rows = [
        [Text.from_markup(cell).plain for cell in row] for row in zip(*columns, strict=True)
    ]
    rule = ["---:" if column.justify == "right" else "---" for column in table.columns]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))
