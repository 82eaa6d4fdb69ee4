"""The values of directives: parsed from words, shown to clients, written to files.

A reader receives the words after the directive's name. It raises ValueError for an invalid value,
and `ConfigError` if the error has a text of its own. Text is UTF-8 with other bytes as surrogates,
so that every file name and password is preserved.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

import attrs

from disque_trio.statemachine.address import is_host_name, literal_ip, parse_place

_Value = TypeVar("_Value")

Reader = Callable[[Sequence[str]], _Value]
"""Parses words into a value."""
Writer = Callable[[_Value], str]
"""Formats a value."""


class ConfigError(Exception):
    """An invalid directive: the reason, and advice."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@attrs.frozen
class Kind(Generic[_Value]):
    """A kind of value. `least` and `most` are the limits of its number of words in the file."""

    read: Reader[_Value]
    show: Writer[_Value]
    """For CONFIG GET."""
    write: Writer[_Value]
    """For CONFIG REWRITE, quoted if needed; an empty text means no line."""
    least: int = 1
    most: int = 1


AnyKind = Kind[Any]


def encode(text: str) -> bytes:
    """The bytes of a text."""
    return text.encode("utf-8", "surrogateescape")


def decode(raw: bytes) -> str:
    """The text for which `encode` returns these bytes."""
    return raw.decode("utf-8", "surrogateescape")


_ESCAPES: Final = {
    ord("\\"): "\\\\",
    ord('"'): '\\"',
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    ord("\a"): "\\a",
    ord("\b"): "\\b",
}


def quoted(text: str) -> str:
    """The text in double quotes, escaped so that the parser of inline commands returns the same
    bytes."""
    return '"' + "".join(_escaped(byte) for byte in encode(text)) + '"'


def _escaped(byte: int) -> str:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}"


# Numbers.

_INT64_MAX: Final = (1 << 63) - 1
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_SIZE: Final = re.compile(r"([0-9]{1,20})(b|kb?|mb?|gb?)?", re.IGNORECASE)
_UNITS: Final = {
    "": 1,
    "b": 1,
    "k": 1000,
    "kb": 1 << 10,
    "m": 1000**2,
    "mb": 1 << 20,
    "g": 1000**3,
    "gb": 1 << 30,
}


def number_from(words: Sequence[str], *, least: int, most: int = _INT64_MAX) -> int:
    """Parse a whole number within bounds. The empty word is 0, as in every command (original
    1.4)."""
    word = words[0] or "0"
    if not _NUMBER.fullmatch(word) or not least <= int(word) <= most:
        bounds = f" from {least} up" if most == _INT64_MAX else f" from {least} to {most}"
        raise ValueError(f"'{word}' is not a whole number{bounds if least > -_INT64_MAX else ''}")
    return int(word)


def number(least: int, most: int = _INT64_MAX) -> Kind[int]:
    """Whole numbers within bounds."""
    return Kind(lambda words: number_from(words, least=least, most=most), str, str)


MAX_WORKERS: Final = 64


def _workers_from(words: Sequence[str]) -> int:
    try:
        return number_from(words, least=1, most=MAX_WORKERS)
    except ValueError as error:
        advice = "give as many as this machine has cores to spare, or 1 for a single process"
        raise ValueError(f"{error}: {advice}") from None


WORKERS: Final = Kind(_workers_from, str, str)


def clamped(least: int, most: int) -> Kind[int]:
    """Whole numbers; a number out of bounds is replaced by the nearest bound."""

    def read(words: Sequence[str]) -> int:
        return max(least, min(most, number_from(words, least=-_INT64_MAX)))

    return Kind(read, str, str)


def size_from(words: Sequence[str]) -> int:
    """Parse a size in bytes, with or without a unit."""
    found = _SIZE.fullmatch(words[0])
    if not found:
        raise ValueError(f"'{words[0]}' is not a size such as 1048576, 100kb or 1gb")
    size = int(found[1]) * _UNITS[(found[2] or "").lower()]
    if size > _INT64_MAX:
        raise ValueError(f"'{words[0]}' is more than 8 exabytes")
    return size


def size_written(size: int) -> str:
    """The size in the largest binary unit that divides it."""
    for unit in ("gb", "mb", "kb"):
        if size and size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return str(size)


SIZE: Final = Kind(size_from, str, size_written)


def positive_size_from(words: Sequence[str]) -> int:
    """Parse a size in bytes, at least 1."""
    size = size_from(words)
    if not size:
        raise ValueError("0 bytes leave no room for anything")
    return size


POSITIVE_SIZE: Final = Kind(positive_size_from, str, size_written)


def size_from_to(least: int, most: int) -> Kind[int]:
    """Sizes in bytes, within bounds."""
    bounds = f"at least {size_written(least)}"
    if most != _INT64_MAX:
        bounds = f"from {size_written(least)} to {size_written(most)}"

    def read(words: Sequence[str]) -> int:
        size = size_from(words)
        if not least <= size <= most:
            raise ValueError(f"'{words[0]}' is not {bounds}")
        return size

    return Kind(read, str, size_written)


def _memory_limit(words: Sequence[str]) -> int:
    limit = size_from(words)
    if not limit:
        raise ConfigError(
            "You need to specify a memory limit greater than zero, such as 'maxmemory 1gb'"
        )
    return limit


MEMORY_LIMIT: Final = Kind(_memory_limit, str, size_written)


def _octal(words: Sequence[str]) -> int:
    if not re.fullmatch("[0-7]{1,4}", words[0]) or int(words[0], 8) > 0o777:
        raise ValueError(f"'{words[0]}' is not an octal file mode from 0 to 777")
    return int(words[0], 8)


OCTAL: Final = Kind(_octal, "{:o}".format, "{:o}".format)

# Choices.


def choice_from(words: Sequence[str], names: Sequence[str]) -> str:
    """Parse one of `names`, case-insensitive."""
    if words[0].lower() not in names:
        raise ValueError(f"'{words[0]}' is none of {', '.join(names)}")
    return words[0].lower()


def choice(*names: str) -> Kind[str]:
    """One of a few names."""
    return Kind(lambda words: choice_from(words, names), str, str)


def flag_from(words: Sequence[str]) -> bool:
    """Parse ``yes`` or ``no``, case-insensitive."""
    return choice_from(words, ("yes", "no")) == "yes"


def flag_shown(is_on: int) -> str:
    """``yes`` or ``no``."""
    return "yes" if is_on else "no"


FLAG: Final = Kind(flag_from, flag_shown, flag_shown)

# Texts.


def _text(words: Sequence[str]) -> str:
    if "\0" in words[0]:
        raise ValueError("it has a null byte in it")
    return words[0]


def _quoted_or_no_line(text: str) -> str:
    return quoted(text) if text else ""


TEXT: Final = Kind(_text, str, quoted)
TEXT_OR_UNSET: Final = Kind(_text, str, _quoted_or_no_line)
"""A text; an empty one is the same as no directive."""


def _file_name(words: Sequence[str]) -> str:
    name = _text(words)
    if "/" in name or not name:
        raise ValueError(f"'{name}' is not a bare file name; the directory is that of 'dir'")
    return name


FILE_NAME: Final = Kind(_file_name, str, quoted)

_PASSWORD_LIMIT: Final = 512


def _password(words: Sequence[str]) -> bytes:
    password = encode(words[0])
    if len(password) > _PASSWORD_LIMIT:
        raise ValueError(f"a password has at most {_PASSWORD_LIMIT} bytes")
    return password


PASSWORD: Final = Kind(
    _password, decode, lambda password: _quoted_or_no_line(decode(password))
)  # fmt: skip

LEAST_SECRET: Final = 16
"""The minimum length in bytes: shorter secrets can be found offline by trial from a recorded
handshake."""


def _shared_secret(words: Sequence[str]) -> bytes:
    secret = encode(words[0])
    for line in secret.split(b"\n"):
        if secret and not LEAST_SECRET <= len(line) <= _PASSWORD_LIMIT:
            raise ValueError(
                f"a shared secret has {LEAST_SECRET} to {_PASSWORD_LIMIT} bytes; "
                "`openssl rand -hex 32` makes one"
            )
    return secret


SHARED_SECRET: Final = attrs.evolve(PASSWORD, read=_shared_secret)

WEB_ROLES: Final = ("reader", "client", "operator", "admin")
"""Roles of users of the web port (`web.roles`)."""
_USER: Final = re.compile(
    rf"[A-Za-z0-9_-]{{1,32}}:(?:{'|'.join(WEB_ROLES)}):"
    r"(?:sha256\$[0-9a-f]{64}|scrypt\$[0-9]{1,6}\$[0-9]{1,2}\$[0-9]{1,2}\$[0-9A-Za-z+/=]{24}"
    r"\$[0-9A-Za-z+/=]{44})"
)


MOST_SCRYPT_BYTES: Final = 64 << 20
"""The maximum memory for the comparison of a password, because anyone can request one."""
_SCRYPT_SIZES: Final = (16, 32)
"""The sizes of salt and hash, in bytes."""
_MOST_SCRYPT_WORK: Final = 1 << 20
"""The maximum of n * r * p, which determines the time: eight times the value that `disque-trio
users` chooses, 0.5 s."""


def _check_scrypt(secret: str) -> None:
    """Raise ValueError for a scrypt hash with invalid numbers, such as one that was written by
    hand. OpenSSL would reject some at each login, and take minutes for others."""
    kind, *rest = secret.split("$")
    if kind != "scrypt":
        return
    n, r, p = map(int, rest[:3])
    what = f"{kind}${n}${r}${p}$"
    if not (r and p and 1 < n < 1 << 16 * r) or n & (n - 1) or n * r * p > _MOST_SCRYPT_WORK:
        raise ValueError(
            f"{what}: n is a power of two from 2 to 2^(16 r) / 2, r and p are 1 or more, and "
            f"n * r * p is {_MOST_SCRYPT_WORK:,} at most"
        )
    if 128 * r * (n + p + 2) > MOST_SCRYPT_BYTES:
        raise ValueError(f"{what}: 128 * n * r is less than {MOST_SCRYPT_BYTES >> 20} MiB")
    for word, size in zip(rest[3:], _SCRYPT_SIZES, strict=True):
        try:
            is_right = len(b64decode(word, validate=True)) == size
        except ValueError:
            is_right = False
        if not is_right:
            raise ValueError(f"{what}: {word} is not {size} bytes in base64")


def _users(words: Sequence[str]) -> bytes:
    lines = words[0].splitlines()
    names: set[str] = set()
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        if not _USER.fullmatch(line):
            raise ValueError(
                f"line {number} is not NAME:ROLE:HASH with one of the roles "
                f"{', '.join(WEB_ROLES)}; `disque-trio users` writes it"
            )
        name, _, secret = line.split(":")
        try:
            _check_scrypt(secret)
        except ValueError as error:
            advice = "delete the line, then add the user with `disque-trio users add`"
            raise ValueError(f"line {number}: {error}; {advice}") from error
        if name in names:
            raise ValueError(f"line {number} is a second one for {name}")
        names.add(name)
    return encode(words[0])


USERS: Final = attrs.evolve(PASSWORD, read=_users)

# Several words.

BIND_LIMIT: Final = 16
_ADDRESS: Final = re.compile(r"[0-9A-Za-z.:%_*-]+")


def _addresses(words: Sequence[str]) -> tuple[str, ...]:
    for word in words:
        if not _ADDRESS.fullmatch(word):
            raise ValueError(f"'{word}' is not an address such as 127.0.0.1 or ::1")
    return tuple(words)


ADDRESSES: Final = Kind(_addresses, " ".join, " ".join, most=BIND_LIMIT)


def _own_address(words: Sequence[str]) -> str:
    address = literal_ip(words[0])
    if words[0] and not address and not is_host_name(words[0]):
        raise ValueError(
            f"'{words[0]}' is not an IP address or the name of a host, such as 192.0.2.7, "
            "2001:db8::7 or node-1.example"
        )
    return address or words[0]


OWN_ADDRESS: Final = Kind(_own_address, str, _quoted_or_no_line)
_ZONE: Final = re.compile(r"[0-9A-Za-z._:/-]{0,64}")


def _zone(words: Sequence[str]) -> str:
    if not _ZONE.fullmatch(words[0]):
        raise ValueError(
            f"'{words[0]}' is no name of a zone; it takes up to 64 letters, digits, and . _ : / -"
        )
    return words[0]


ZONE: Final = Kind(_zone, str, _quoted_or_no_line)
_NAME: Final = re.compile(rb"[0-9A-Za-z._-]{0,32}")


def is_name(text: bytes) -> bool:
    """Is it a valid name of a node or cluster?"""
    return _NAME.fullmatch(text) is not None


def _name(words: Sequence[str]) -> str:
    if not is_name(words[0].encode(errors="replace")):
        raise ValueError(f"'{words[0]}' is no name; it takes up to 32 letters, digits, and . _ -")
    return words[0]


NAME: Final = Kind(_name, str, _quoted_or_no_line)


def _seeds(words: Sequence[str]) -> tuple[str, ...]:
    seeds = tuple(seed for word in words for seed in word.split())
    for seed in seeds:
        if parse_place(seed) is None:
            raise ValueError(
                f"'{seed}' is not the place of a node, such as node-1.example:7711 or "
                "192.0.2.7:7711"
            )
    return seeds


SEEDS: Final = Kind(_seeds, " ".join, " ".join, most=BIND_LIMIT)
"""CONFIG SET has all of them in one argument."""


def _host_names(words: Sequence[str]) -> tuple[str, ...]:
    names = tuple(name.lower() for word in words for name in word.split())
    for name in names:
        if not (is_host_name(name) or literal_ip(name)):
            raise ValueError(f"'{name}' is not the name of a host such as a.example")
    return names


HOST_NAMES: Final = Kind(_host_names, " ".join, " ".join, most=BIND_LIMIT)
"""CONFIG SET has all of them in one argument."""

Limits = tuple[int, int, int]


def _output_limits(words: Sequence[str]) -> Limits:
    if words[0].lower() != "normal":
        raise ValueError(f"'{words[0]}' is no class of clients; the only one is 'normal'")
    return size_from(words[1:2]), size_from(words[2:3]), number_from(words[3:4], least=0)


def output_limits_from_one_word(words: Sequence[str]) -> Limits:
    """Parse the argument of CONFIG SET: groups of four words, of which the last group applies."""
    parts = words[0].split()
    if not parts or len(parts) % 4:
        raise ValueError("it takes groups of class, hard limit, soft limit and soft seconds")
    return [_output_limits(parts[start : start + 4]) for start in range(0, len(parts), 4)][-1]


def _output_limits_shown(limits: Limits) -> str:
    return "normal {} {} {}".format(*limits)


def _output_limits_written(limits: Limits) -> str:
    hard, soft, seconds = limits
    return f"normal {size_written(hard)} {size_written(soft)} {seconds}"


OUTPUT_LIMITS: Final = Kind(
    _output_limits, _output_limits_shown, _output_limits_written, least=4, most=4
)

Renames = tuple[tuple[str, str], ...]


def _renames(words: Sequence[str]) -> Renames:
    return ((words[0].lower(), words[1].lower()),)


def _no_line(_renames: Renames) -> str:
    return ""


RENAMES: Final = Kind(_renames, _no_line, _no_line, least=2, most=2)
