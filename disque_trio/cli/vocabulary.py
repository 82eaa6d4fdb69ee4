"""The commands of the prompt: those of the node's table, and its own."""

from typing import Final

from disque_trio.statemachine.commands.table import ROWS
from disque_trio.statemachine.commands.usage import Form, forms

OWN_WORDS: Final = {
    "help": ("[command]", "List all commands, or show one."),
    "connect": ("host port", "Connect to another node."),
    "clear": ("", "Clear the screen."),
    "exit": ("", "Leave; so do quit and Ctrl-D."),
}
"""The prompt's own commands."""

SUMMARIES: Final = {row.name.upper(): row.summary for row in ROWS}
FORMS: Final[dict[str, list[Form]]] = {row.name.upper(): forms(row.usage) for row in ROWS}
