"""What `help` says, made of the node's own table of commands."""

import difflib
from collections.abc import Sequence
from typing import Final

from disque_trio.cli.usage import Form, forms, show
from disque_trio.statemachine.commands.table import ROWS

OWN_WORDS: Final = {
    "help": ("[command]", "This list, or one command."),
    "connect": ("host port", "Talk to another node."),
    "clear": ("", "Clear the screen."),
    "exit": ("", "Leave; so do quit and Ctrl-D."),
}
"""What the prompt itself understands."""

SUMMARIES: Final = {row.name.upper(): row.summary for row in ROWS}
FORMS: Final[dict[str, list[Form]]] = {row.name.upper(): forms(row.usage) for row in ROWS}


def page(topic: Sequence[bytes]) -> str:
    """The text of ``help`` or ``help COMMAND``."""
    if not topic:
        return _list()
    name = topic[0].decode(errors="replace").upper()
    if name in FORMS:
        return _command(name)
    if name.lower() in OWN_WORDS:
        usage, summary = OWN_WORDS[name.lower()]
        return f"{name.lower()} {usage}".rstrip() + f"\n{summary}"
    near = difflib.get_close_matches(name, FORMS, n=1)
    advice = f"Did you mean {near[0]}?" if near else "`help` lists them all."
    return f"There is no command {name}. {advice}"


def _list() -> str:
    own = {f"{name} {usage}".rstrip(): summary for name, (usage, summary) in OWN_WORDS.items()}
    width = max(len(left) for left in (*SUMMARIES, *own))
    lines = ["Commands of the node:"]
    lines += [f"  {left:{width}}  {right}" for left, right in SUMMARIES.items()]
    lines += ["", "Words of this client:"]
    lines += [f"  {left:{width}}  {right}" for left, right in own.items()]
    lines += ["", "`help COMMAND` shows its arguments. `3 PING` runs PING three times."]
    return "\n".join(lines)


def _command(name: str) -> str:
    lines = [f"{name} {show([form])}".rstrip() for form in FORMS[name]]
    return "\n".join([*lines, SUMMARIES[name]])
