"""The text of `help`, from the node's own table of commands."""

import difflib
from collections.abc import Sequence
from io import StringIO

from rich.console import Console
from rich.markdown import Markdown

from disque_trio import manual
from disque_trio.cli.usage import show
from disque_trio.cli.vocabulary import FORMS, OWN_WORDS, SUMMARIES


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
    return "\n".join([*lines, SUMMARIES[name], "", _for_terminals(manual.text(name.lower()))])


def _for_terminals(markdown: str) -> str:
    """Markdown laid out as plain text."""
    console = Console(width=100, color_system=None, force_terminal=False, file=StringIO())
    with console.capture() as capture:
        console.print(Markdown(markdown))
    return "\n".join(line.rstrip() for line in capture.get().split("\n")).strip("\n")
