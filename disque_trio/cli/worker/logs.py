"""What a worker process writes to stderr: a line for each record, which names the job."""

import logging
import sys

from disque_trio.cli.output import printable_lines


class Lines(logging.Formatter):
    """Lines with the task and the id of the job that they are about. `child` is the number of a
    process that has a parent."""

    def __init__(self, child: str = "") -> None:
        who = f" [{child}]" if child else ""
        super().__init__(f"%(asctime)s{who} %(levelname)s %(about)s%(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        """The line without a traceback."""
        known = vars(record)
        record.about = f"{known['task']} {known['job']}: " if "job" in known else ""
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        """All lines. Texts of exceptions may hold what a producer has sent."""
        return printable_lines(super().format(record))


def log_to_stderr(level: str, child: str = "") -> None:
    """For this process, unless the app has set up its own handlers."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(child))
    logging.basicConfig(level=level.upper(), handlers=[handler])
