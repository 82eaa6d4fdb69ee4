"""Command lines as records: each field of an attrs class is an option or an argument.

A field is declared once, by `option`, `switch`, `modes` or `argument`: its names, its kind with the
bounds, its default, and its help. Parsers, `--help`, environment variables, the tables of docs/ and
the completions of shells are derived from it. A mistake is reported on one line, with the option
and the value, and ends with status 2.
"""

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import attrs

from disque_trio import __version__
from disque_trio.terminal.arguments import Parser

Record = TypeVar("Record")

_DECLARED: Final = "option"


class UsageError(Exception):
    """A request cannot be carried out; the text says why, for the user."""


# Kinds of values.


@attrs.frozen
class Kind:
    """What a word of the command line may be."""

    expected: str
    """What is allowed, for errors: "a port from 1 to 65535"."""
    read: Callable[[str], Any]
    """The value of a word. Raises `ValueError`."""
    metavar: str = ""
    words: tuple[str, ...] = ()
    """All that are allowed, if they can be listed."""

    def __call__(self, word: str) -> Any:
        """The value of a word. Raises `ArgumentTypeError`.

        argparse also passes the default of an optional positional argument that is missing.
        """
        if word is argparse.SUPPRESS:
            return word
        try:
            return self.read(word)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{word!r} is not {self.expected}") from None


def whole(
    least: int = 0, most: int | None = None, what: str = "number", metavar: str = "N"
) -> Kind:
    """A whole number within bounds."""

    def read(word: str) -> int:
        digits = word.removeprefix("-") if least < 0 else word
        if not digits.isdecimal() or not least <= int(word) <= (
            int(word) if most is None else most
        ):
            raise ValueError
        return int(word)

    if most is None:
        return Kind(f"a whole {what}, {least} or more", read, metavar)
    return Kind(f"a {what} from {least} to {most}", read, metavar)


def _number(least: float, most: float, what: str, metavar: str) -> Kind:
    def read(word: str) -> float:
        if not least <= (number := float(word)) <= most:  # which NaN is not, either
            raise ValueError
        return number

    above = f", {least:g} or more" if most == LONGEST_S else f" from {least:g} to {most:g}"
    return Kind(f"a {what}{above}", read, metavar)


LONGEST_S: Final = 1e9
"""So many seconds are allowed where nothing else is said."""


def seconds(least: float = 0, most: float = LONGEST_S) -> Kind:
    """A number of seconds within bounds."""
    return _number(least, most, "number of seconds", "SECONDS")


def one_of(*words: str, metavar: str = "") -> Kind:
    """One of these words."""

    def read(word: str) -> str:
        if word not in words:
            raise ValueError
        return word

    return Kind(f"one of {', '.join(words)}", read, metavar or f"{{{','.join(words)}}}", words)


def matching(pattern: str, expected: str, metavar: str) -> Kind:
    """A word of this form."""

    def read(word: str) -> str:
        if not re.fullmatch(pattern, word):
            raise ValueError
        return word

    return Kind(expected, read, metavar)


def text(metavar: str) -> Kind:
    """Any word. FILE and DIR are completed by the shell."""
    return Kind("text", str, metavar)


def _flag(word: str) -> bool:
    if word not in {"", "0", "1"}:
        raise ValueError
    return word == "1"


FILE: Final = text("FILE")
DIR: Final = text("DIR")
URL: Final = text("URL")
PORT: Final = whole(1, 65535, "port", "PORT")
COUNT: Final = whole(1)
SHARE: Final = _number(0, 1, "share", "SHARE")
FLAG: Final = Kind("1 or 0", _flag)


# Fields.


@attrs.frozen(kw_only=True)
class Option:
    """How a field is written on a command line."""

    names: tuple[str, ...]
    """`-c`, `--concurrency`; none if its place says which it is."""
    kind: Kind
    about: str
    shown: str = ""
    """The default, for people."""
    group: str = ""
    """The heading of the help under which it is."""
    excludes: str = ""
    """Of several options with this word, one may be given."""
    constant: Any = None
    """The value that the name alone stands for."""
    nargs: int | str | None = None
    is_repeated: bool = False
    is_required: bool = False
    variable: str = ""
    """Its environment variable, over which the command line has precedence."""
    replaces: tuple[str, ...] = ()
    """Options of other commands that this one has in their place."""

    @property
    def name(self) -> str:
        """The long name, or what there is."""
        return next((each for each in self.names if each.startswith("--")), "".join(self.names[:1]))

    @property
    def help(self) -> str:
        """The sentence, with the default."""
        return f"{self.about} ({self.shown})" if self.shown else self.about


def _field(options: Sequence[Option], default: Any) -> Any:
    return attrs.field(default=default, metadata={_DECLARED: tuple(options)})


def option(
    names: str, kind: Kind, about: str, default: Any = None, shown: str | None = None, **more: Any
) -> Any:
    """A field with a value: `option("-p --port", PORT, "its port", 7711)`. `shown` is the default
    for people, if its text does not do."""
    if shown is None:
        shown = f"{default:g}" if isinstance(default, float) else str(default or "")
    found = Option(names=tuple(names.split()), kind=kind, about=about, shown=shown, **more)
    return _field([found], () if found.is_repeated else default)


def switch(names: str, about: str, *, is_set: bool = True, **more: Any) -> Any:
    """A field that is True if the option is given; False with `is_set=False`."""
    found = Option(names=tuple(names.split()), kind=FLAG, about=about, constant=is_set, **more)
    return _field([found], not is_set)


def modes(default: str, *choices: tuple[str, str, str], **more: Any) -> Any:
    """A field with one switch for each value: name, value, help. One of them may be given."""
    return _field(
        [
            Option(
                names=(name,),
                kind=FLAG,
                about=about,
                constant=value,
                excludes=choices[0][0],
                **more,
            )
            for name, value, about in choices
        ],
        default,
    )


def argument(
    kind: Kind, about: str | None = "", nargs: int | str | None = None, default: Any = None
) -> Any:
    """A field without a name. Without an `about` the help leaves it out."""
    shown = argparse.SUPPRESS if about is None else about
    many = () if nargs not in {None, "?"} else default
    return _field([Option(names=(), kind=kind, about=shown, nargs=nargs)], many)


def options_of(record: type) -> Iterator[tuple[str, Option]]:
    """All options of a record, with the names of their fields, in the order of the help."""
    for field in attrs.fields(record):
        for each in field.metadata.get(_DECLARED, ()):
            yield field.name, each


# Commands.


@attrs.frozen(kw_only=True)
class Command(Generic[Record]):
    """A command: what it is called with, and what it does."""

    record: type[Record]
    """Its options, as fields. Its `__attrs_post_init__` raises `UsageError` for options that do not
    go together."""
    about: str
    """A sentence, which is its line in the list of commands."""
    run: Callable[[Record], int] | None = None
    """Gives the exit status. Raises `UsageError`. None: whoever parses it carries it out."""
    more: str = ""
    """More sentences, for its own help."""
    epilog: str = ""
    usage: str | None = None
    has_host: bool = False
    """Is -h the host? Otherwise it is --help."""
    advice: Mapping[str, str] = attrs.field(factory=dict)
    """What to do instead of options that other programs have."""


@attrs.frozen(kw_only=True)
class Family:
    """A command that has subcommands. The epilog describes the exit status."""

    about: str
    commands: "Mapping[str, Command[Any] | Family]"
    epilog: str = ""


Program = Command[Any] | Family


@attrs.frozen
class Call(Generic[Record]):
    """One command line, read and checked."""

    command: Command[Record]
    options: Record
    origins: Mapping[str, str]
    """By field: the command line, an environment variable, or the default."""


def parse(
    program: Program, prog: str, words: Sequence[str], environment: Mapping[str, str]
) -> Call[Any]:
    """Read a command line. Exits with 2 if it is wrong, and with 0 after `--help`."""
    namespace, unknown = parser_of(program, prog).parse_known_args(words)
    found = vars(namespace)
    parser: Parser = found.pop("parser")
    command: Command[Any] = found.pop("command")
    if unknown:
        parser.unknown(unknown)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for field, each in options_of(command.record):
        origin = origins.setdefault(field, "default")
        if field in found:
            value, origin = found[field], "command line"
            values[field] = tuple(value) if isinstance(value, list) else value
        elif word := environment.get(each.variable):
            values[field], origin = _from(parser, each, word), each.variable
        origins[field] = origin
    try:
        return Call(command, command.record(**values), origins)
    except UsageError as error:
        parser.error(str(error))


def _from(parser: Parser, each: Option, word: str) -> Any:
    try:
        return each.kind(word)
    except argparse.ArgumentTypeError as error:
        parser.error(f"environment variable {each.variable}: {error}")


def parser_of(program: Program, prog: str) -> Parser:
    """The parser of a program. It finds the options, the `command` and its `parser`."""
    parser = Parser(**_texts(program), epilog=program.epilog, prog=prog)
    parser.add_argument(
        "--version", action="version", version=f"disque-trio {__version__}", help="the version"
    )
    _fill(parser, program)
    return parser


def _texts(program: Program) -> dict[str, Any]:
    more, usage = (program.more, program.usage) if isinstance(program, Command) else ("", None)
    return {
        "description": f"{program.about} {more}".rstrip(),
        "usage": usage,
        "formatter_class": argparse.RawDescriptionHelpFormatter
        if program.epilog
        else argparse.HelpFormatter,
        "add_help": False,
        "allow_abbrev": False,
    }


def _fill(parser: Parser, program: Program) -> None:
    helps: tuple[str, ...] = ("-h", "--help")
    if isinstance(program, Command):
        parser.set_defaults(command=program, parser=parser)
        parser.advice = {**_replaced(program.record), **program.advice}
        _add_options(parser, program.record)
        helps = helps[program.has_host :]
    parser.add_argument(*helps, action="help", help="print this and exit")
    if isinstance(program, Family):
        commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
        for name, each in program.commands.items():
            see = f"Exit status: see '{parser.prog} --help'."
            about = each.about[0].lower() + each.about[1:].rstrip(".")
            child = commands.add_parser(name, help=about, epilog=each.epilog or see, **_texts(each))
            _fill(child, each)


def _replaced(record: type) -> dict[str, str]:
    options = (each for _, each in options_of(record))
    return {word: f"give {each.name} instead" for each in options for word in each.replaces}


def _add_options(parser: Parser, record: type) -> None:
    groups: dict[str, Any] = {"": parser}
    sets: dict[str, Any] = {}
    for field, each in options_of(record):
        if each.group not in groups:
            groups[each.group] = parser.add_argument_group(each.group)
        where = groups[each.group]
        if each.excludes:
            if each.excludes not in sets:
                sets[each.excludes] = where.add_mutually_exclusive_group()
            where = sets[each.excludes]
        _add(where, field, each)


def _add(where: Any, field: str, each: Option) -> None:
    about = each.help if each.help == argparse.SUPPRESS else each.help.replace("%", "%%")
    known: dict[str, Any] = {"help": about, "default": argparse.SUPPRESS}
    if each.names:
        known["dest"] = field
    if each.constant is not None:
        where.add_argument(*each.names, action="store_const", const=each.constant, **known)
        return
    known |= {"type": each.kind, "metavar": each.kind.metavar, "nargs": each.nargs}
    if each.is_required:
        known["required"] = True
    if each.is_repeated:
        known["action"] = "append"
    where.add_argument(*(each.names or (field,)), **known)
