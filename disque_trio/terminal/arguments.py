"""The parser of a command line: its errors show what they cite without commanding the terminal."""

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NoReturn

from disque_trio.terminal.escapes import printable


class Parser(argparse.ArgumentParser):
    """Scripts pass queue names, ids and files on that others have named. Parsers of subcommands are
    of this class, too."""

    advice: Mapping[str, str] = {}
    """What to do instead of options that other programs have."""

    def error(self, message: str) -> NoReturn:
        """Report it on one line, and exit with status 2."""
        self.exit(2, f"{self.prog}: {printable(message)}\n")

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
