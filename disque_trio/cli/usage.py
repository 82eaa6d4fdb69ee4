"""What may come next on a line that is being typed, from the usage lines of the commands."""

from collections.abc import Sequence

from disque_trio.statemachine.commands.usage import Form, Part


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
    # Optional parts before a required word cannot follow it. Otherwise they may come in any order,
    # but the arguments of a keyword come first.
    before = form[:at] if taker.is_optional else ()
    again = (taker,) if taker.is_repeated else ()
    return values + before + again + form[at + 1 :]


def _taker(form: Form, word: str) -> int | None:
    """The index of the part that the word belongs to."""
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
