"""Parsing of arguments: numbers, seconds, ids, options. Every function raises `CommandError` for
invalid ones.

Seconds become milliseconds here and nowhere else.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from disque_trio.statemachine.base import (
    MAX_INTEGER,
    NOT_AN_INTEGER,
    SYNTAX_ERROR,
    CommandError,
    JobId,
    Millis,
)
from disque_trio.statemachine.commandoptions import Table
from disque_trio.statemachine.job import check_id, is_well_formed
from disque_trio.statemachine.joboptions import AUTO, Option
from disque_trio.statemachine.key_facts import MAX_KEY
from disque_trio.statemachine.suggestions import no_option, shown
from disque_trio.statemachine.tracked_deliveries import check_token

T = TypeVar("T")

_INTEGER: Final = re.compile(rb"[+-]?[0-9]{0,100}\Z")
"""Leading zeros are allowed, but Python refuses to convert thousands of digits."""
_SHORT: Final = 18
"""Numbers with up to this many digits need no range check."""
_SECONDS: Final = re.compile(rb"([0-9]{1,100})(?:\.([0-9]{1,3}))?\Z")
_MAX_WAIT: Final[Millis] = 1 << 60
"""Half of `FOREVER`, so that no deadline exceeds it."""
_MAX_REMEMBERED: Final = 1024
_MAX_REMEMBERED_BYTES: Final = 128
MIN_INTEGER: Final = -(1 << 63)


def integer(
    word: bytes,
    error: bytes = NOT_AN_INTEGER,
    *,
    largest: int = MAX_INTEGER,
    name: bytes = b"",
) -> int:
    """A signed 64-bit integer; the empty string counts as 0 (original 1.4).

    Raises CommandError with `error`, the word and, if given, the `name` of the argument.
    """
    if word.isdigit() and len(word) <= _SHORT:  # as nearly always
        value = int(word)
        if value <= largest:
            return value
    elif not _is_integer(word):
        raise CommandError(b"%b: %b is no whole number%b" % (error, shown(word), _for(name)))
    value = int(word) if word else 0
    if not MIN_INTEGER <= value <= largest:
        bound = largest if value > 0 else MIN_INTEGER
        raise CommandError(b"%b: %b is beyond %d%b" % (error, shown(word), bound, _for(name)))
    return value


def _is_integer(word: bytes) -> bool:
    return bool(_INTEGER.match(word)) and word not in (b"+", b"-")


def _for(name: bytes) -> bytes:
    return b" for " + name if name else b""


def at_least(
    word: bytes, least: int, error: bytes, *, name: bytes = b"", most: int = MAX_INTEGER
) -> int:
    """An integer from `least` to `most`. Raises CommandError as `integer` does."""
    value = integer(word, error, largest=most, name=name)
    if value < least:
        raise CommandError(b"%b: %b is less than %d%b" % (error, shown(word), least, _for(name)))
    return value


def seconds(word: bytes, name: bytes, *, most_s: int, least: Millis = 1) -> Millis:
    """Milliseconds from seconds with up to three decimals. `name` is the option's, for the
    error."""
    value = _millis(word)
    if value is None or not least <= value <= most_s * 1000:
        raise CommandError(
            b"ERR %b must be seconds from %b to %d, with up to three decimals: %b"
            % (name, b"0.001" if least else b"0", most_s, shown(word))
        )
    return value


def _millis(word: bytes) -> Millis | None:
    found = _SECONDS.match(word)
    return None if found is None else int(found[1]) * 1000 + int((found[2] or b"").ljust(3, b"0"))


def seconds_of_original(word: bytes, error: bytes) -> Millis:
    """Milliseconds from an option that takes whole seconds in the original, with its errors;
    decimals are allowed in addition, up to three."""
    if _is_integer(word):
        return at_least(word, 0, error) * 1000
    value = _millis(word)
    if value is None:
        raise CommandError(
            b"%b: %b is not seconds with up to three decimals" % (error, shown(word))
        )
    return value


def in_seconds(value: Millis) -> bytes:
    """The text that `seconds` reads as this value, without trailing zeros."""
    return (b"%d.%03d" % divmod(value, 1000)).rstrip(b"0").rstrip(b".")


def once(before: object, name: bytes) -> None:
    """Raise CommandError if the option has a value already."""
    if before is not None:
        raise CommandError(SYNTAX_ERROR + b": %b is given twice" % name)


def timeout(word: bytes, name: bytes) -> Millis:
    """A timeout in milliseconds; 0 is none. `name` is the argument's, for the error."""
    if word == b"0":
        return 0
    value = integer(word, b"ERR timeout is not an integer or out of range", name=name)
    if value < 0:
        raise CommandError(b"ERR timeout is negative: %b for %b" % (shown(word), name))
    return min(value, _MAX_WAIT)


def job_ids(args: list[bytes]) -> list[JobId]:
    """The job ids after the command's name. Raises CommandError if one is malformed."""
    ids = args[1:]
    for word in ids:
        if not is_well_formed(word):
            check_id(word)
    return ids


def with_tokens(words: Sequence[bytes]) -> list[tuple[JobId, bytes]]:
    """The job ids, each with the token after its ``@`` (empty if there is none). Raises
    CommandError if one is malformed."""
    pairs = []
    for word in words:
        job_id, at, token = word.partition(b"@")
        pairs.append((check_id(job_id), check_token(token) if at else b""))
    return pairs


class Remembered(dict[tuple[bytes, ...], T]):
    """A cache of parsed options, because clients repeat the same ones. `[]` parses words that are
    not cached, and raises `CommandError` for invalid ones."""

    def __init__(
        self, parse: Callable[[tuple[bytes, ...]], T], is_common: Callable[[T], bool] = bool
    ) -> None:
        """Only values for which `is_common` is true are cached."""
        super().__init__()
        self._parse = parse
        self._is_common = is_common

    def __missing__(self, words: tuple[bytes, ...]) -> T:
        meaning = self._parse(words)
        if sum(map(len, words)) <= _MAX_REMEMBERED_BYTES and self._is_common(meaning):
            if len(self) >= _MAX_REMEMBERED:
                self.clear()
            self[words] = meaning
        return meaning


class Words:
    """An iterator over option words; `value` consumes the value of the option just read."""

    __slots__ = ("_words",)

    def __init__(self, words: Sequence[bytes]) -> None:
        self._words = iter(words)

    def __iter__(self) -> Iterator[bytes]:
        return self._words

    def value(self, option: bytes) -> bytes:
        """The next word, as the value of `option`. Raises CommandError if there is none."""
        word = next(self._words, None)
        if word is None:
            raise CommandError(SYNTAX_ERROR + b": %b has no value behind it" % option)
        return word


def check_key(word: bytes) -> bytes:
    """The key itself. Raises CommandError if it is too long."""
    if len(word) > MAX_KEY:
        raise CommandError(
            b"ERR A key has at most %d bytes: %b has %d" % (MAX_KEY, shown(word), len(word))
        )
    return word


def read_options(words: Sequence[bytes], command: bytes, options: Table) -> dict[str, Any]:
    """The values of a command's options, by option name; the value of a flag is True. Raises
    CommandError for an unknown or repeated option."""
    found: dict[str, Any] = {}
    left = Words(words)
    for word in left:
        option = options.get(word.upper())
        if option is None:
            raise CommandError(SYNTAX_ERROR + b": " + no_option(word, command, options))
        once(found.get(option.name), option.word)
        found[option.name] = read_value(option, left)
    return found


def read_value(option: Option, words: Words) -> Any:
    """The value of an option just read: a number, milliseconds, bytes, or True for a flag."""
    if not option.usage:
        return True
    word = words.value(option.word)
    if not option.is_number and option.usage != "ms":
        return read_text(option, word)
    if option.usage == "n|AUTO" and word.upper() == b"AUTO":
        return AUTO
    if option.usage == "ms":
        return timeout(word, option.word)
    if option.error:
        return _of_original(option, word)
    if option.is_time:
        return seconds(word, option.word, most_s=option.most, least=min(option.least, 1))
    error = b"ERR %b must be a whole number from %d to %d" % (
        option.word, option.least, option.most,
    )  # fmt: skip
    if not word:
        raise CommandError(error + b": '' is no whole number")
    return at_least(word, option.least, error, most=option.most)


def read_text(option: Option, word: bytes) -> bytes:
    """The word itself. Raises CommandError if it is not a valid value of the option."""
    if option.usage == "key":
        return check_key(word)
    if option.least <= len(word) <= option.most:
        return word
    what = option.usage.strip("[]").encode()
    if len(word) < option.least:
        raise CommandError(b"ERR The %b behind %b is empty" % (what, option.word))
    raise CommandError(
        b"ERR The %b behind %b has at most %d bytes: this one has %d"
        % (what, option.word, option.most, len(word))
    )


def _of_original(option: Option, word: bytes) -> int:
    if option.has_decimals:
        return seconds_of_original(word, option.error)
    value = at_least(word, option.least, option.error)
    if value > option.most and not option.is_time:
        raise CommandError(b"%b: %d" % (option.error, value))
    return value
