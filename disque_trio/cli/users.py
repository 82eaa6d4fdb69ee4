"""`disque-trio users`: users of the web port, in a file of their hashes."""

import contextlib
import getpass
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from disque_trio.cli.frame import FAILED, cannot_write, fail, run
from disque_trio.statemachine.values import USERS, WEB_ROLES
from disque_trio.terminal.options import (
    FILE,
    Command,
    Family,
    UsageError,
    argument,
    matching,
    one_of,
    option,
    switch,
)
from disque_trio.terminal.output import complain, say, say_table
from disque_trio.web.users import Account, hashed, parsed, token

NAME: Final = "users"
LEAST: Final = 8
"""Characters of a password."""
_EPILOG: Final = """\
FILE is the file of the directive web-users-file, or of `disque-trio console --users-file`. It has
one line per user: name, role, hash. A node reloads it on SIGHUP.

roles:
  reader    sees everything
  client    adds and takes jobs over HTTP
  operator  does both, and runs operations on queues, jobs and workers
  admin     also runs operations on nodes, and reads the audit log

exit status: 0 success, 1 the user does not exist, or exists already, 2 wrong usage
"""
_HEADS: Final = ("NAME", "ROLE", "LOGS IN WITH")
_WAYS: Final = {b"scrypt": "a password", b"sha256": "a token"}
_NAME: Final = matching("[A-Za-z0-9_-]{1,32}", "a name of 1 to 32 letters, digits, - and _", "NAME")


@attrs.frozen(kw_only=True)
class List:
    """`users list`."""

    file: str = argument(FILE, "file of users")


@attrs.frozen(kw_only=True)
class Remove(List):
    """`users remove`."""

    name: str = argument(_NAME, "name of the user")


@attrs.frozen(kw_only=True)
class Add(Remove):
    """`users add` and `users token`."""

    role: str = option("--role", one_of(*WEB_ROLES), "role of the user", "reader")
    is_replacing: bool = switch("--replace", "replace an existing user")


def main(argv: Sequence[str]) -> int:
    """Run a command. The exit status."""
    return run(NAME, PROGRAM, argv)


def _list(options: List) -> int:
    rows = [
        (each.name, each.role, _WAYS[each.secret.partition(b"$")[0]])
        for each in _read(options.file)
    ]
    say_table(_HEADS, rows)
    return 0


def _add(options: Add) -> int:
    return _put(options, hashed)


def _token(options: Add) -> int:
    """Prints the token, which nobody can show again."""
    word, secret = token()
    status = _put(options, lambda _: secret, has_password=False)
    if status == 0:
        say(word)
    return status


def _put(options: Add, made: Callable[[bytes], bytes], *, has_password: bool = True) -> int:
    known = _read(options.file, may_lack=True)
    others = [each for each in known if each.name != options.name]
    if len(others) < len(known) and not options.is_replacing:
        return fail(NAME, f"the user {options.name} exists: give --replace")
    word = _password(options.name) if has_password else b""
    account = Account(options.name, options.role, made(word))
    _write(options.file, [*others, account])
    complain(f"disque-trio {NAME}: {options.name} has the role {options.role}")
    return 0


def _remove(options: Remove) -> int:
    known = _read(options.file)
    others = [each for each in known if each.name != options.name]
    if len(others) == len(known):
        return fail(NAME, f"there is no user {options.name} in {options.file}", FAILED)
    _write(options.file, others)
    return 0


def _password(name: str) -> bytes:
    """From the terminal, twice; else a line of the standard input."""
    if not sys.stdin.isatty():
        word = sys.stdin.readline().rstrip("\r\n")
    else:
        word = getpass.getpass(f"Password of {name}: ")
        if word != getpass.getpass("Again: "):
            raise UsageError("the two passwords differ")
    if len(word) < LEAST:
        raise UsageError(f"a password needs at least {LEAST} characters")
    return os.fsencode(word)


def _read(path: str, *, may_lack: bool = False) -> list[Account]:
    try:
        text = Path(path).read_text("utf-8", "surrogateescape")
    except FileNotFoundError:
        if may_lack:
            return []
        raise
    try:
        return parsed(USERS.read([text]))
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error


def _write(path: str, known: Sequence[Account]) -> None:
    """For its owner alone, and never half of it."""
    lines = [b"%b:%b:%b\n" % (e.name.encode(), e.role.encode(), e.secret) for e in known]
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(lines)
            if target.exists():
                os.chmod(name, target.stat().st_mode & 0o777)
                with contextlib.suppress(PermissionError):
                    os.chown(name, target.stat().st_uid, target.stat().st_gid)
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise cannot_write(path, error) from error


def _command(record: Any, carry_out: Callable[[Any], int], about: str) -> Command[Any]:
    return Command(record=record, run=carry_out, about=about)


PROGRAM: Final = Family(
    about="Manage users of the console and of HTTP.",
    epilog=_EPILOG,
    commands={
        "add": _command(Add, _add, "Add a user, whose password is read from the terminal."),
        "token": _command(Add, _token, "Add a program, and print its token."),
        "list": _command(List, _list, "List the users."),
        "remove": _command(Remove, _remove, "Remove a user."),
    },
)
