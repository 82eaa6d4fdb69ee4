"""Output of results, progress and errors."""

import sys

from rich.console import Console

from disque_trio.terminal.consoles import console


def out() -> Console:
    """Where results go."""
    return console(soft_wrap=True, markup=False)


def errors() -> Console:
    """Where progress and questions go."""
    return console(sys.stderr, soft_wrap=True, markup=False)
