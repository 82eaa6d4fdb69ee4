"""Carries out commands, one after the other, and prints the replies.

The one-shot client, the lines of a pipe and the interactive prompt all use it.
"""

import math
import re
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import BinaryIO, Final, NoReturn

import attrs

from disque_trio.cli.formats import Form, for_people
from disque_trio.cli.options import FOREVER
from disque_trio.cli.waits import wait_s
from disque_trio.client.connection import Connection
from disque_trio.client.errors import LostError
from disque_trio.statemachine.base import OK, Failure, Reply
from disque_trio.terminal.output import complain
from disque_trio.wire.words import UnbalancedQuotesError, split

_RED: Final = b"\x1b[31m%b\x1b[0m"
_TIMES: Final = re.compile(rb"[0-9]{1,9}")
_ENDING: Final = frozenset({b"RESTART", b"CRASH-AND-RECOVER", b"SEGFAULT", b"ASSERT", b"OOM"})
"""Subcommands of DEBUG that end the node."""
_HOW_TO_GIVE_IT: Final = (
    "Give the password with --password-file, --askpass or in $DISQUE_AUTH; or type AUTH."
)


@attrs.define(eq=False)
class Session:
    """A connection, how replies look, where they go, and how often a command runs."""

    connection: Connection
    form: Form
    out: BinaryIO
    has_color: bool = False
    reply_timeout_s: float = math.inf
    """How late a reply may be."""
    times: int = 1
    interval_s: float = 0.0

    def line(self, text: bytes) -> bool:
        """Carry out a typed line, such as ``3 PING``; False if anything failed."""
        try:
            args = split(text)
        except UnbalancedQuotesError:
            complain("Invalid argument(s): close every quote, and put a space after it.")
            return False
        if len(args) > 1 and _TIMES.fullmatch(args[0]):
            return self.repeat(args[1:], int(args[0]))
        return not args or self.repeat(args, self.times)

    def repeat(self, args: Sequence[bytes], times: int) -> bool:
        """Carry out a command so many times; False if any of them failed."""
        is_well = True
        done = 0
        while times == FOREVER or done < times:
            if done:
                time.sleep(self.interval_s)
            is_well &= self.perform(args)
            done += 1
        return is_well

    def perform(self, args: Sequence[bytes]) -> bool:
        """Carry out one command and print its reply; False if that is an error."""
        name = args[0].upper()
        if name in {b"HELP", b"?"}:
            self._print(_manual(args[1:]).encode())
            return True
        self.connect()
        limit_s = wait_s(args) + self.reply_timeout_s
        self.connection.wait_at_most(None if limit_s == math.inf else limit_s)
        if not self.connection.send(args):
            return True
        try:
            reply = self.connection.receive()
        except LostError:
            if _ends_the_node(args):
                return True
            raise
        self._show(args, reply)
        if reply == OK and name == b"AUTH":
            self.connection.password = args[-1]
        elif reply == OK and name == b"MONITOR":
            self._watch(args)
        return not isinstance(reply, Failure)

    def connect(self) -> None:
        """Connect if need be. A refused password is only reported: the command may still work."""
        refusal = self.connection.ready()
        if refusal is not None:
            complain(f"AUTH failed: {refusal.text.decode(errors='replace')}")

    def _show(self, args: Sequence[bytes], reply: Reply) -> None:
        text = self.form(args, reply)
        if isinstance(reply, Failure):
            is_red = self.has_color and self.form is for_people
            self._print(_RED % text if is_red else text)
            if reply.text.startswith(b"NOAUTH"):
                complain(_HOW_TO_GIVE_IT)
        else:
            self._print(text)

    def _print(self, text: bytes) -> None:
        self.out.write(text + b"\n")
        self.out.flush()

    def _watch(self, args: Sequence[bytes]) -> NoReturn:
        self.connection.wait_at_most(None)
        while True:  # Only Ctrl-C ends MONITOR, by closing the connection.
            self._print(self.form(args, self.connection.receive()))


def _manual(topic: Sequence[bytes]) -> str:
    # Imported only when needed: the table of commands imports the whole state machine.
    page: Callable[[Sequence[bytes]], str] = import_module("disque_trio.cli.manual").page
    return page(topic)


def _ends_the_node(args: Sequence[bytes]) -> bool:
    words = [word.upper() for word in args[:2]]
    return words[0] == b"SHUTDOWN" or (words[0] == b"DEBUG" and words[-1] in _ENDING)
