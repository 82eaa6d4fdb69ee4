"""The kinds of values in scenario files: durations, ranges, choices, names.

A duration is a number with a unit, ``50ms``. A range is two, ``5ms..50ms``, drawn uniformly, or,
followed by `` log``, with every order of magnitude equally likely. Durations are read as
microseconds, `MILLIS` and `SECONDS` in the units of their names.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from disque_trio.sim.scenarios.ranges import Choice, Range, fixed
from disque_trio.sim.scenarios.schema import Kind, Spot, WrongValueError, advice
from disque_trio.statemachine import directives
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.joboptions import AUTO
from disque_trio.statemachine.knobs import KNOBS
from disque_trio.statemachine.values import ConfigError

_Value = TypeVar("_Value")

SECOND: Final = 1_000_000
TIME_UNITS: Final = {
    "us": 1,
    "ms": 1_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
    "d": 86_400 * SECOND,
}
SIZE_UNITS: Final = {"": 1, "B": 1, "kB": 1_000, "KB": 1 << 10, "MB": 1 << 20}
PPM_UNITS: Final = {"ppm": 1}
SHARE_UNITS: Final = {"%": 0.01}
_NUMBER: Final = r"(-?\d[\d_]*(?:\.\d+)?)\s*((?!log\b)[A-Za-z%]*)"
_ONE: Final = re.compile(_NUMBER)
_TWO: Final = re.compile(_NUMBER + r"\s*\.\.\s*" + _NUMBER + r"(\s+log)?")

# Words and plain numbers.


def _read_text(value: Any, _spot: Spot) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _read_name(value: Any, _spot: Spot) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", value):
        raise ValueError
    return value


def _read_flag(value: Any, _spot: Spot) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


TEXT: Final = Kind("a text", _read_text)
LABEL: Final = Kind("a name of letters, digits, '-', '_' and '.'", _read_name)
FLAG: Final = Kind("true or false", _read_flag)


def count(least: int, most: int | None = None) -> Kind[int]:
    """A whole number that is not drawn."""

    def read(value: Any, _spot: Spot) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError
        if value < least or (most is not None and value > most):
            raise ValueError
        return value

    return Kind(f"a whole number{_limits(least, most)}", read)


def one_of(*words: str, description: str = "") -> Kind[str]:
    """One of some words; `description` if they are too many to list."""

    def read(value: Any, spot: Spot) -> str:
        if not isinstance(value, str):
            raise ValueError
        if value not in words:
            spot.wrong(f'{spot.name} = "{value}" is unknown{advice(value, words)}')
            raise WrongValueError
        return value

    return Kind(description or " or ".join(f"`{word}`" for word in words), read)


def _limits(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f" from {least:g} to {most:g}"
    return "" if least is None else f" of {least:g} or more"


# Ranges.


def _quantity(number: str, unit: str, units: dict[str, float]) -> float:
    if unit not in units:
        known = ", ".join(each for each in units if each)
        raise ValueError(f"units are {known}" if known else "it takes no unit")
    amount = float(number.replace("_", "")) * units[unit]
    return round(amount, 9)


def _range_from(text: str, units: dict[str, float]) -> Range:
    if match := _ONE.fullmatch(text.strip()):
        value = _quantity(match[1], match[2], units)
        return Range(value, value)
    match = _TWO.fullmatch(text.strip())
    if match is None:
        raise ValueError
    low, low_unit, high, high_unit, log = match.groups()
    # In "5..50ms" the first number has the unit of the second one.
    found = Range(
        _quantity(low, low_unit or high_unit, units),
        _quantity(high, high_unit, units),
        is_log=log is not None,
    )
    if found.low > found.high:
        raise ValueError("the first is the greater")
    if found.is_log and found.low <= 0:
        raise ValueError("a log range starts above 0")
    return found


def ranges(
    what: str,
    units: dict[str, float],
    least: float | None = None,
    most: float | None = None,
    *,
    step: int = 0,
) -> Kind[Range]:
    """A number or a range of numbers, in units, within limits; with `step`, in multiples of it."""

    def read(value: Any, _spot: Spot) -> Range:
        if isinstance(value, bool):
            raise ValueError
        if isinstance(value, int | float) and "" in units:
            found = Range(value, value)
        elif isinstance(value, str):
            found = _range_from(value, units)
        else:
            raise ValueError
        if least is not None and found.low < least:
            raise ValueError(f"{_limits(least, most).strip()}")
        if most is not None and found.high > most:
            raise ValueError(f"{_limits(least, most).strip()}")
        return _in_steps(found, step) if step > 0 else found

    return Kind(what, read)


def _in_steps(found: Range, step: int) -> Range:
    if found.low % step or found.high % step:
        raise ValueError("not a multiple of the smallest step")
    return Range(found.low // step, found.high // step, found.is_log)


_DURATION_LIKE: Final = "such as `50ms` or `5ms..50ms`"
DURATION: Final = ranges(f"a duration {_DURATION_LIKE}", dict(TIME_UNITS), 0, step=1)
POSITIVE_DURATION: Final = ranges(
    f"a duration above 0 {_DURATION_LIKE}", dict(TIME_UNITS), 1, step=1
)
MILLIS: Final = ranges("a duration in whole milliseconds", dict(TIME_UNITS), 0, step=1_000)
SIGNED_MILLIS: Final = ranges("a duration such as `1s` or `-1h..1h`", dict(TIME_UNITS), step=1_000)
SECONDS: Final = ranges("a duration in whole seconds", dict(TIME_UNITS), 0, step=SECOND)
POSITIVE_SECONDS: Final = ranges(
    "a duration in whole seconds, at least 1", dict(TIME_UNITS), SECOND, step=SECOND
)
SHARE: Final = ranges("a number or range from 0 to 1, such as `0.05`", {"": 1}, 0, 1)
RATE: Final = ranges("a number or range above 0, such as `2.0` or `0.1..10 log`", {"": 1}, 1e-9)
MAX_PPM: Final = 500_000
"""A clock that loses a million parts per million stands still, and no wait on it ever ends."""
PPM: Final = ranges(
    "parts per million, such as `200` or `-200..200`",
    {"": 1, "ppm": 1},
    -MAX_PPM,
    MAX_PPM,
    step=1,
)
SIZE: Final = ranges("a size, such as `200`, `64kB` or `1..2 MB`", dict(SIZE_UNITS), 0, step=1)


def whole(least: int, most: int | None = None) -> Kind[Range]:
    """A whole number or a range of whole numbers."""
    what = f"a whole number or range{_limits(least, most)}, such as `3` or `1..5`"
    return ranges(what, {"": 1}, least, most, step=1)


_COPIES: Final = whole(1, 65535)
COPIES_OR_AUTO: Final[Kind[Range]] = Kind(
    f"`auto`, {_COPIES.description}",
    lambda value, spot: fixed(AUTO) if value == "auto" else _COPIES.take(value, spot),
)

_AMOUNTS: Final[dict[str, tuple[dict[str, Any], int]]] = {
    "ppm": (PPM_UNITS, 1),
    "share": (SHARE_UNITS, 0),
    "time": (TIME_UNITS, 1_000),
}
"""By sort of amount: its units, and the smallest step. `ppm` also ends in the unit of minutes."""


def _read_amount(value: Any, _spot: Spot) -> tuple[str, Range]:
    if not isinstance(value, str):
        raise ValueError
    for sort, (units, step) in _AMOUNTS.items():
        if value.endswith(tuple(units)):
            found = _range_from(value, units)
            if sort == "ppm" and max(abs(found.low), abs(found.high)) > MAX_PPM:
                raise ValueError(_limits(-MAX_PPM, MAX_PPM).strip())
            return sort, _in_steps(found, step) if step else found
    raise ValueError


AMOUNT: Final = Kind("a duration, `200ppm` or `5%`, or a range of them", _read_amount)
"""The sort of unit, and the range."""


def choice(kind: Kind[Range]) -> Kind[Choice]:
    """A value, a range, or an array of them of which one is drawn; `default` leaves the option
    out."""

    def option(value: Any, spot: Spot) -> Range | None:
        return None if value == "default" else kind.take(value, spot)

    def read(value: Any, spot: Spot) -> Choice:
        if not isinstance(value, list):
            return Choice((option(value, spot),))
        if not value:
            raise ValueError
        return Choice(tuple(option(each, spot.inside(at)) for at, each in enumerate(value)))

    return Kind(f"{kind.description}; `default`; or an array of such to choose from", read)


_MANY: Final = re.compile(r"(?P<stem>[A-Za-z0-9][A-Za-z0-9._-]*)\*(?P<count>\d{1,4})")
MOST_QUEUES: Final = 1_000


def _one_or_many(value: Any, spot: Spot) -> tuple[str, ...]:
    match = _MANY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return (LABEL.take(value, spot),)
    if not 1 <= int(match["count"]) <= MOST_QUEUES:
        raise ValueError(f"from 1 to {MOST_QUEUES} queues")
    return tuple(f"{match['stem']}{number}" for number in range(1, int(match["count"]) + 1))


def _read_queues(value: Any, spot: Spot) -> tuple[str, ...]:
    if not isinstance(value, list):
        return _one_or_many(value, spot)
    if not value:
        raise ValueError
    kind = Kind(QUEUES.description, _one_or_many)
    return tuple(name for at, each in enumerate(value) for name in kind.take(each, spot.inside(at)))


QUEUES: Final[Kind[tuple[str, ...]]] = Kind(
    "a queue's name, `mail*40` for mail1 to mail40, or an array of such", _read_queues
)


def words_of(kind: Kind[_Value]) -> Kind[tuple[_Value, ...]]:
    """One value, or an array of them."""

    def read(value: Any, spot: Spot) -> tuple[_Value, ...]:
        if not isinstance(value, list):
            return (kind.take(value, spot),)
        if not value:
            raise ValueError
        return tuple(kind.take(each, spot.inside(at)) for at, each in enumerate(value))

    return Kind(f"{kind.description}, or an array of such", read)


# Tables with free keys.


def weights(words: Sequence[str]) -> Kind[tuple[tuple[str, Range], ...]]:
    """A table of relative weights, with these keys."""
    weight = ranges("a weight of 0 or more, or a range", {"": 1}, 0)

    def read(value: Any, spot: Spot) -> tuple[tuple[str, Range], ...]:
        if not isinstance(value, dict) or not value:
            raise ValueError
        for name in value:
            if name not in words:
                spot.inside(name).wrong(f"unknown key '{name}'{advice(name, words)}")
        found = [(name, weight.take(each, spot.inside(name))) for name, each in value.items()]
        if any(name not in words for name in value):
            raise WrongValueError
        if all(each.high == 0 for _, each in found):
            raise ValueError("no weight is above 0")
        return tuple(found)

    return Kind("a table of weights, by ways to end a job", read)


def _read_directives(value: Any, spot: Spot) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise ValueError
    found = []
    for name, each in value.items():
        words = _words(each)
        try:
            if words is None:
                raise ConfigError(f"{name} takes a text, a number or a flag")
            directives.parse_line(Config(), [name, *words])
        except ConfigError as error:
            spot.inside(name).wrong(error.reason)
        else:
            found.append((name, " ".join(words)))
    if len(found) < len(value):
        raise WrongValueError
    return tuple(found)


def _words(value: Any) -> list[str] | None:
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, int | str):
        return str(value).split()
    return None


DIRECTIVES: Final = Kind("a table of directives, as in disque.conf", _read_directives)


def _read_choices(value: Any, spot: Spot) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict) or not all(isinstance(each, list) for each in value.values()):
        raise ValueError
    for name, words in value.items():
        for number, word in enumerate(words):
            if word != "default":
                _read_directives({name: word}, spot.inside(name).inside(number))
    return tuple(
        (name, tuple(" ".join(_words(word) or ()) for word in words))
        for name, words in value.items()
    )


DIRECTIVE_CHOICES: Final = Kind(
    'a table of arrays by directive, such as `["default", "1s"]`', _read_choices
)


def _read_nodes(value: Any, _spot: Spot) -> tuple[int, ...] | str:
    if isinstance(value, str) and value in {"all", "random"}:
        return value
    numbers = value if isinstance(value, list) else [value]
    if not numbers or not all(type(each) is int and each >= 1 for each in numbers):
        raise ValueError
    return tuple(numbers)


NODES: Final = Kind("`all`, `random`, a node's number, or an array of numbers", _read_nodes)


def _read_nodes_or_zone(value: Any, spot: Spot) -> tuple[int, ...] | str:
    return "zone" if value == "zone" else _read_nodes(value, spot)


NODES_OR_ZONE: Final = Kind(
    "`all`, `random`, `zone` (all nodes of one zone), a node's number, or an array of numbers",
    _read_nodes_or_zone,
)


def _read_knobs(value: Any, spot: Spot) -> tuple[tuple[str, int], ...]:
    if not isinstance(value, dict):
        raise ValueError
    least = {knob.name: knob.least for knob in KNOBS}
    for name, number in value.items():
        if name not in least:
            spot.inside(name).wrong(f"no constant is called {name}{advice(name, tuple(least))}")
        elif type(number) is not int or number < least[name]:
            spot.inside(name).wrong(f"{name} is a whole number of at least {least[name]}: {number}")
    return tuple(value.items())


KNOB_VALUES: Final = Kind("a table of constants with their values", _read_knobs)
