"""Parses usage lines such as ``queue body [DELAY sec] [ASYNC]`` into the parts of each form.

Upper-case words are keywords, lower-case words are placeholders of values, brackets enclose
optional parts and may be nested once, ``...`` repeats the part before it, ``a|b`` is a choice.
`` | `` separates the forms of a command.
"""

import re
from collections.abc import Sequence
from typing import Final

import attrs

from disque_trio.statemachine.suggestions import did_you_mean, shown

_PART: Final = re.compile(r"\[(?:[^][]|\[[^][]*\])*\]|\S+")
_FORMS: Final = re.compile(r" \| (?![^\[]*\])")


@attrs.frozen
class Part:
    """A part of a form: one word, or all words in a bracket."""

    words: tuple[str, ...]
    is_optional: bool = False
    is_repeated: bool = False

    def __str__(self) -> str:
        text = " ".join((*self.words, "...") if self.is_repeated else self.words)
        return f"[{text}]" if self.is_optional else text

    @property
    def is_keyword(self) -> bool:
        """Is its first word a keyword or a choice of keywords?"""
        return self.words[0].isupper() or "|" in self.words[0]

    @property
    def choices(self) -> list[str]:
        """The keywords that its first word may be; empty if it is a placeholder."""
        return self.words[0].split("|") if self.is_keyword else []

    def opens_with(self, word: str) -> bool:
        """Is this word its keyword?"""
        return word.lower() in [choice.lower() for choice in self.choices]


Form = tuple[Part, ...]


def forms(usage: str) -> list[Form]:
    """The forms of a usage line; there is at least one."""
    inner = usage[1:-1] if is_optional(usage) else usage
    return [_form(text) for text in _FORMS.split(inner)]


def is_optional(usage: str) -> bool:
    """Does it have several forms, and may the command also have no arguments?"""
    return re.fullmatch(r"\[[^]]* \| [^]]*\]", usage) is not None


def _form(text: str) -> Form:
    parts: list[Part] = []
    for token in _PART.findall(text):
        if token == "...":
            parts.append(attrs.evolve(parts[-1], is_optional=True, is_repeated=True))
        elif token.startswith("["):
            words = tuple(token[1:-1].split())
            is_repeated = words[-1] == "..."
            parts.append(Part(words[: len(words) - is_repeated], True, is_repeated))
        else:
            parts.append(Part((token,)))
    return tuple(parts)


def wrong_number(name: str, usage: str) -> bytes:
    """The error for a wrong number of words."""
    line = f"{name.upper()} {usage}".rstrip()
    return f"ERR wrong number of arguments for '{name}' command: {line}".encode()


def mistake(command: str, usage: str, args: Sequence[bytes]) -> bytes:
    """The error for arguments that fit no form: an unknown subcommand, or wrong arguments of a
    known one."""
    typed = args[1].upper()
    known = {form[0].words[0].encode(): form for form in forms(usage)}
    if typed not in known:
        near = did_you_mean(typed, known) or b"; there are " + b", ".join(known)
        return b"there is no %b %b%b" % (command.encode(), shown(args[1]), near)
    line = " ".join(map(str, known[typed]))
    return f"it is {command} {line}".encode()
