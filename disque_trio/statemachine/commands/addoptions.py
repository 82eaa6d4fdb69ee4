"""The options of ADDJOB, from words to values (original 2.2).

If an option of the original is repeated, the last one wins; our options must not be repeated.
"""

from typing import Final

from disque_trio.statemachine.base import SYNTAX_ERROR, CommandError
from disque_trio.statemachine.commands.parse import Words, in_seconds, once, read_value
from disque_trio.statemachine.joboptions import BY_WORD, OPTIONS, WAYS, Option, Options
from disque_trio.statemachine.suggestions import no_option, none_of

_LISTED: Final = (
    b"REPLICATE", b"TTL", b"RETRY", b"MAXLEN", b"DELAY", b"PRIORITY", b"GROUP", b"LIMIT", b"SYNC",
    b"BACKOFF",
)  # fmt: skip
NAMES: Final = tuple(
    dict.fromkeys(
        [
            each.word
            for word in [*_LISTED, *BY_WORD]
            for each in OPTIONS
            if word in (each.word, each.needs)
        ]
    )
)
"""The options in the order of error texts: `_LISTED` first, and each option before those that need
it."""


def parse_options(words: list[bytes]) -> Options:
    """Parse the options, in any order and case. Raises CommandError."""
    options = Options()
    left = Words(words)
    for word in left:
        option = BY_WORD.get(word.upper())
        if option is None:
            raise CommandError(SYNTAX_ERROR + b": " + no_option(word, b"ADDJOB", NAMES))
        if option.is_ours:
            once(getattr(options, option.name), option.word)
        if option.word == b"IFEXISTS":
            options.if_exists = _way(option, left.value(option.word))
        else:
            setattr(options, option.name, read_value(option, left))
    if options.delay % 1000 and not options.has_ours:
        raise CommandError(
            b"%b: %b has decimals, for which an option must be there that the original does not "
            b"have, such as PRIORITY 0" % (BY_WORD[b"DELAY"].error, in_seconds(options.delay))
        )
    options.check()
    return options


def _way(option: Option, word: bytes) -> int:
    way = word.lower()
    if way not in WAYS:
        raise CommandError(SYNTAX_ERROR + b": %b: %b" % (option.word, none_of(word, WAYS)))
    return WAYS.index(way)
