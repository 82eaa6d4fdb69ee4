"""Completion with Tab, and the hint after the cursor, both from the usage of the commands."""

from collections.abc import Iterable, Mapping
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from disque_trio.cli.usage import candidates, rest, show
from disque_trio.cli.vocabulary import FORMS, OWN_WORDS, SUMMARIES
from disque_trio.statemachine.commands.usage import Form, forms
from disque_trio.statemachine.directives import DIRECTIVES
from disque_trio.wire.words import UnbalancedQuotesError, split

_FORMS: Final[Mapping[str, list[Form]]] = {
    **FORMS,
    **{name.upper(): forms(usage) for name, (usage, _) in OWN_WORDS.items()},
}
_SETTINGS: Final = [directive.name for directive in DIRECTIVES if directive.is_shown]


class Commands(Completer):
    """Completes names of commands, their subcommands and options, and configuration names."""

    def get_completions(self, document: Document, _event: CompleteEvent) -> Iterable[Completion]:
        """The words that complete the text before the cursor."""
        typed, prefix = _typed(document.text_before_cursor)
        for word in _possible(typed):
            if word.upper().startswith(prefix.upper()):
                text = word.lower() if prefix.islower() else word
                meta = SUMMARIES.get(word, "") if not typed else ""
                yield Completion(text, -len(prefix), display_meta=meta)


def _possible(typed: list[str]) -> list[str]:
    match [word.upper() for word in typed]:
        case []:
            return [*FORMS, *OWN_WORDS]
        case ["HELP"]:
            return [*FORMS]
        case ["CONFIG", "GET" | "SET"]:
            return _SETTINGS
        case [name, *_] if name in _FORMS:
            return candidates(rest(_FORMS[name], typed[1:]))
        case _:
            return []


def hint(line: str) -> str:
    """The arguments that may follow, on a line that starts with a complete command."""
    typed, last = _typed(line)
    words = [*typed, last] if last else typed
    if not words or words[0].upper() not in _FORMS:
        return ""
    text = show(rest(_FORMS[words[0].upper()], words[1:]))
    return f" {text}" if last and text else text


def _typed(line: str) -> tuple[list[str], str]:
    """The words that are complete, and the one that is not."""
    try:
        words = [word.decode(errors="replace") for word in split(line.encode(errors="replace"))]
    except UnbalancedQuotesError:
        return ["?"], ""  # Inside of quotes there is nothing to complete.
    last = words.pop() if words and not line[-1].isspace() else ""
    # A number in front is a repetition.
    return (words[1:] if words and words[0].isdigit() else words), last
