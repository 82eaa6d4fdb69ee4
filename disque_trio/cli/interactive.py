"""The prompt: reads lines with history, completion and hints, until `exit` or Ctrl-D."""

import getpass
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Final

import attrs
from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.layout.processors import AfterInput
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.shortcuts import clear
from prompt_toolkit.styles import Style

from disque_trio.cli.completion import Commands, hint
from disque_trio.cli.session import Session
from disque_trio.client.address import Address
from disque_trio.client.errors import OPTION_TERMS, ConnectionFailedError
from disque_trio.terminal.output import complain, say
from disque_trio.wire.words import UnbalancedQuotesError, split

_STYLE: Final = Style.from_dict({"hint": "ansibrightblack italic"})
_SLOW_S: Final = 0.5
"""A command that took longer gets its time printed, as redis-cli does."""


def interact(session: Session) -> bool:
    """Read and carry out commands until the user leaves; always True: errors were shown."""
    return Prompt(session).run()


@attrs.define(eq=False)
class Prompt:
    """The loop around one session."""

    session: Session
    ask_password: Callable[[str], str] = getpass.getpass
    environment: Mapping[str, str] = attrs.Factory(lambda: os.environ)
    _is_leaving: bool = attrs.field(init=False, default=False)

    def run(self) -> bool:
        """Read and carry out lines until the user leaves."""
        reader = self._reader()
        self._guarded(self.session.connect)
        while not self._is_leaving:
            try:
                text = reader.prompt(self.text)
            except KeyboardInterrupt:
                continue  # The line is thrown away, as in a shell.
            except EOFError:
                break
            for line in text.split("\n"):  # A paste may bring many.
                if not self._is_leaving:
                    self._line(line)
        return True

    def _reader(self) -> PromptSession[str]:
        return PromptSession(
            history=history(self.environment),
            completer=Commands(),
            complete_while_typing=False,
            input_processors=[AfterInput(_hint)],
            style=_STYLE,
            color_depth=None if self.session.has_color else ColorDepth.DEPTH_1_BIT,
        )

    def text(self) -> str:
        """The prompt: the node that the next line goes to."""
        connection = self.session.connection
        return f"{connection.address}> " if connection.is_open else "not connected> "

    def _line(self, line: str) -> None:
        try:
            words = split(line.encode(errors="surrogateescape"))
        except UnbalancedQuotesError:
            words = []
        match [word.lower() for word in words]:
            case [b"exit" | b"quit", *_]:
                self._is_leaving = True
            case [b"clear"]:
                clear()
            case [b"connect", _, port] if port.isdigit():
                self._move(os.fsdecode(words[1]), int(port))
            case [b"auth"]:
                self._guarded(self._authenticate)
            case _:
                self._guarded(lambda: self._timed(line))

    def _move(self, host: str, port: int) -> None:
        connection = self.session.connection
        connection.close()
        # Under TLS as before: the password goes along.
        connection.address = Address(host=host, port=port, tls=connection.address.tls)
        self._guarded(self.session.connect)

    def _authenticate(self) -> None:
        password = self.ask_password("Password: ")
        self.session.perform([b"AUTH", os.fsencode(password)])

    def _timed(self, line: str) -> None:
        started = monotonic()
        self.session.line(line.encode(errors="surrogateescape"))
        took_s = monotonic() - started
        if took_s >= _SLOW_S:
            say(f"({took_s:.2f}s)")

    def _guarded(self, act: Callable[[], object]) -> None:
        """Run `act`; show errors, and go on."""
        try:
            act()
        except ConnectionFailedError as error:
            complain(error.worded(OPTION_TERMS))
        except EOFError:
            say()  # Ctrl-D instead of a password.
        except KeyboardInterrupt:
            # The reply would be taken for that of the next command. Closing also ends a GETJOB that
            # waits.
            say()
            self.session.connection.close()
            self._guarded(self.session.connect)


def _hint() -> FormattedText:
    app = get_app()
    if app.is_done:  # The hint would stay on the screen.
        return FormattedText()
    document = app.current_buffer.document
    rest = hint(document.text) if document.is_cursor_at_the_end else ""
    return FormattedText([("class:hint", rest)])


class _HistoryWithoutSecrets(FileHistory):
    """A history file that leaves out lines with passwords."""

    def append_string(self, string: str) -> None:
        if not is_secret(string):
            super().append_string(string)


def is_secret(text: str) -> bool:
    """Does any of these lines contain a password?"""
    for line in text.encode(errors="surrogateescape").lower().split(b"\n"):
        try:
            words = split(line)
        except UnbalancedQuotesError:
            words = line.split()
        is_greeting = b"hello" in words[:2]
        if b"auth" in (words if is_greeting else words[:2]) or b"requirepass" in words:
            return True
    return False


def history(environment: Mapping[str, str]) -> History:
    """The history: in a file that only its owner can read, or in memory if there can be none."""
    path = history_path(environment)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError:
        return InMemoryHistory()
    return _HistoryWithoutSecrets(path)


def history_path(environment: Mapping[str, str]) -> Path:
    """Where the history is: in the XDG state directory if that is set, else in the home."""
    state = environment.get("XDG_STATE_HOME")
    if state:
        return Path(state) / "disque_trio" / "history"
    return Path.home() / ".disque_trio_history"
