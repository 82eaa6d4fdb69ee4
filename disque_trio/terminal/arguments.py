"""The parser of a command line: its errors show what they cite without commanding the terminal."""

import argparse
from typing import NoReturn

from disque_trio.terminal.escapes import printable


class Parser(argparse.ArgumentParser):
    """Scripts pass queue names, ids and files on that others have named. Parsers of subcommands are
    of this class, too."""

    def error(self, message: str) -> NoReturn:
        """Show the usage and the error, on one line, and exit with status 2."""
        super().error(printable(message))
