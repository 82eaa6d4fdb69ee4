"""The parser of a command line: its errors show what they cite without commanding the terminal."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

from disque_trio.terminal.escapes import printable


class Parser(argparse.ArgumentParser):
    """Scripts pass queue names, ids and files on that others have named. Parsers of subcommands are
    of this class, too."""

    advice: Mapping[str, str] = {}
    """What to do instead of options that other programs have."""
    _is_mixing = False
    _words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Options may stand before an argument that may be left out: of `LAKE --engine spark SQL`
        argparse would take no SQL, and report it as unknown."""
        self._words = args or ()
        places = self._get_positional_actions()
        if self._is_mixing or len(places) < 2 or places[-1].nargs not in ("?", "*"):
            return super().parse_known_args(args, namespace)
        self._is_mixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_mixing = False

    def _print_message(self, message: str, file: Any = None) -> None:
        """Unlike that of argparse it raises an error of the output."""
        if message and file is sys.stdout is not None:
            file.write(message)
        else:
            super()._print_message(message, file)

    def error(self, message: str) -> NoReturn:
        """Report it on one line, and exit with status 2."""
        self.exit(2, f"{self.prog}: {printable(message + self._on_dashes(message))}\n")

    def _on_dashes(self, message: str) -> str:
        """Advice if a name that begins with a dash may have been taken for an option."""
        if "arguments are required" not in message or "--" in self._words:
            return ""
        known = self._option_string_actions
        dashed = (word for word in self._words if word[:1] == "-")
        name = next((word for word in dashed if word.partition("=")[0] not in known), "")
        return f"; put -- before a name that starts with a dash: -- {name}" if name else ""

    def unknown(self, words: Sequence[str]) -> NoReturn:
        """Report options that there are not, with a suggestion."""
        word = words[0]
        known = list(self._option_string_actions)
        near = [name for name in known if word.startswith("--") and name.startswith(word)]
        if not near:
            # Imported only when needed, so that commands start quickly.
            near = import_module("difflib").get_close_matches(word.partition("=")[0], known, 1, 0.7)
        hint = f"did you mean {near[0]}?" if near else "--help lists the options"
        self.error(f"unrecognized arguments: {' '.join(words)}; {self.advice.get(word, hint)}")
