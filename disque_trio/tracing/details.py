"""The `detail` of a row: words, and pairs of the form ``name=value`` (`rows`).

A value that may contain spaces is the last one; its reader gives its name.
"""

from disque_trio.tracing.rows import Row


def fields(detail: str, last: str = "") -> dict[str, str]:
    """Return values by name; a word that is no pair has an empty value. The value of `last` is the
    rest."""
    head, mark, rest = f" {detail}".partition(f" {last}=") if last else (detail, "", "")
    found = {name: value for name, _, value in (word.partition("=") for word in head.split())}
    if mark:
        found[last] = rest
    return found


def numbers(detail: str) -> dict[str, int]:
    """Return the pairs whose value is a number."""
    pairs = fields(detail).items()
    return {name: int(value) for name, value in pairs if value.removeprefix("-").isdecimal()}


def number(detail: str, name: str) -> int:
    """Return the number of this name; 0 if there is none."""
    _, _, rest = f" {detail}".partition(f" {name}=")
    value = rest.partition(" ")[0]
    return int(value) if value.isdigit() else 0


def body(detail: str) -> str | None:
    """Return the body that a client sends or receives; None if the row has none."""
    _, mark, rest = f" {detail}".partition(" body=")
    return rest if mark else None


def jobs_in(row: Row) -> list[str]:
    """Return the jobs that a message, or the end of a connection, concerns."""
    if row.job:
        return [row.job]
    listed = fields(row.detail).get("jobs", "")
    return listed.split(",") if listed else []
