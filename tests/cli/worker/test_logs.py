"""A line of the log says which job it is about."""

import io
import logging

from disque_trio.cli.worker.logs import Lines
from disque_trio.worker.context import JobLog


def lines(*, child: str = "") -> tuple[logging.Logger, io.StringIO]:
    """A logger of its own, and what it writes."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(Lines(child))
    logger = logging.Logger("disque_trio.test")
    logger.addHandler(handler)
    return logger, text


def test_a_line_about_a_job_begins_with_its_task_and_id() -> None:
    logger, text = lines()

    JobLog(logger, {"task": "mail.send", "job": "D-1", "key": "k"}).warning("failed: %s", "why")

    assert text.getvalue().endswith(" WARNING mail.send D-1: failed: why\n")


def test_any_other_line_has_none() -> None:
    logger, text = lines(child="2")

    logger.warning("%d nodes answer", 3)

    assert text.getvalue().endswith(" [2] WARNING 3 nodes answer\n")
