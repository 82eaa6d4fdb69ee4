"""Understands usage lines such as ``queue body [DELAY sec] [ASYNC]``: what may come next?

Upper-case words are keywords, lower-case ones stand for a value, brackets enclose what may be
left out, ``...`` repeats what stands before it, ``a|b`` is a choice. `` | `` separates the forms
of a command that has several.
"""

import re
from collections.abc import Sequence
from typing import Final

import attrs

_PART: Final = re.compile(r"\[[^]]*\]|\S+")
_FORMS: Final = re.compile(r" \| (?![^\[]*\])")


@attrs.frozen
class Part:
    """A piece of a form: one word, or a bracket with all the words in it."""

    words: tuple[str, ...]
    is_optional: bool = False
    is_repeated: bool = False

    def __str__(self) -> str:
        text = " ".join((*self.words, "...") if self.is_repeated else self.words)
        return f"[{text}]" if self.is_optional else text

    @property
    def is_keyword(self) -> bool:
        """Must its first word be typed as it stands?"""
        return self.words[0].isupper() or "|" in self.words[0]

    @property
    def choices(self) -> list[str]:
        """What its first word may be, where that is known."""
        return self.words[0].split("|") if self.is_keyword else []

    def opens_with(self, word: str) -> bool:
        """Is this word its keyword?"""
        return word.lower() in [choice.lower() for choice in self.choices]


Form = tuple[Part, ...]


def forms(usage: str) -> list[Form]:
    """The forms of a usage line; one at least."""
    inner = usage[1:-1] if re.fullmatch(r"\[[^]]* \| [^]]*\]", usage) else usage
    return [_form(text) for text in _FORMS.split(inner)]


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


def rest(possible: Sequence[Form], typed: Sequence[str]) -> list[Form]:
    """What is left of the forms that fit when these words have been typed."""
    if len(possible) > 1 and typed:
        possible = [form for form in possible if form[0].opens_with(typed[0])]
    return [_rest(form, typed) for form in possible]


def _rest(form: Form, typed: Sequence[str]) -> Form:
    for word in typed:
        form = _after(form, word)
    return form


def _after(form: Form, word: str) -> Form:
    at = _taker(form, word)
    if at is None:
        return form
    taker = form[at]
    values = tuple(Part((value,)) for value in taker.words[1:])
    # Brackets before a word that must come are behind us once it has come. Otherwise they may
    # come in any order, but what the keyword announced comes first.
    before = form[:at] if taker.is_optional else ()
    again = (taker,) if taker.is_repeated else ()
    return values + before + again + form[at + 1 :]


def _taker(form: Form, word: str) -> int | None:
    """Which part does the word belong to?"""
    if form and not form[0].is_optional:
        return 0
    for at, part in enumerate(form):
        if part.opens_with(word):
            return at
    for at, part in enumerate(form):
        if not part.is_keyword:
            return at
        if not part.is_optional:
            return None
    return None


def candidates(left: Sequence[Form]) -> list[str]:
    """The keywords that may come next."""
    found: dict[str, None] = {}
    for form in left:
        for part in form:
            found |= dict.fromkeys(part.choices)
            if not part.is_optional:
                break
    return list(found)


def show(left: Sequence[Form]) -> str:
    """Forms as a usage line again."""
    return " | ".join([" ".join([str(part) for part in form]) for form in left])
