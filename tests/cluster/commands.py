"""Commands of `disque-trio`, run in this process: starting another one takes a second."""

import contextlib
import io

import attrs

from disque_trio.__main__ import main


@attrs.frozen
class Ended:
    """What a command has printed, and its exit status."""

    status: int
    output: str
    errors: str

    @property
    def said(self) -> str:
        """Everything, standard error last."""
        return self.output + self.errors


def ran(*words: str) -> Ended:
    """Run a command to its end."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            status = main(words)
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
    return Ended(status, output.getvalue(), errors.getvalue())
