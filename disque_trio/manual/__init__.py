"""The manual: a page of Markdown for each command, for `help` and docs/commands.md.

Lines that begin with four spaces are a dialogue, which a test plays: `> ` is what is typed, `$1`
the id of the job that was added last, `…` any text, and alone on its line any further lines.
"""

from importlib.resources import files


def text(name: str) -> str:
    """The page of the command with this lower-case name. Raises FileNotFoundError if it has
    none."""
    return files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8")
