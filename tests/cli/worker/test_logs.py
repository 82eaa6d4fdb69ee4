"""A line of the log says which job it is about."""

import io
import json
import logging

import pytest

from disque_trio.cli.worker.logs import FORMATS, JsonLines, Lines
from disque_trio.worker.context import JobLog
from tests.worker.failing import ERRORS, fail


def lines(*, child: str = "", form: str = "human") -> tuple[logging.Logger, io.StringIO]:
    """A logger of its own, and what it writes."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonLines(child) if form == "json" else Lines(child))
    logger = logging.Logger("disque_trio.test")
    logger.addHandler(handler)
    return logger, text


def test_a_line_about_a_job_begins_with_its_task_and_id() -> None:
    logger, text = lines()

    JobLog(logger, {"task": "mail.send", "job": "D-1", "key": "k"}).warning("failed: %s", "why")

    assert text.getvalue().endswith(" WARNING mail.send D-1: failed: why\n")


def test_a_line_may_name_one_of_both() -> None:
    # Other libraries use these names for something of their own, or for nothing.
    logger, text = lines()

    logger.warning("late", extra={"job": "D-1"})
    logger.warning("late", extra={"task": "mail.send", "job": ""})
    logger.warning("late", extra={"job": None})

    ends = [each.partition("WARNING ")[2] for each in text.getvalue().splitlines()]
    assert ends == ["D-1: late", "mail.send: late", "late"]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("what", ERRORS)
def test_any_error_is_logged(form: str, what: str) -> None:
    logger, text = lines(form=form)

    try:
        fail(what)
    except BaseException as error:
        logger.error("failed", exc_info=error)

    assert "failed" in text.getvalue()
    assert "Logging error" not in text.getvalue()


def test_a_line_of_json_has_the_facts_of_a_record_as_fields() -> None:
    logger, text = lines(child="2", form="json")

    known = {"task": "mail.send", "job": "D-1", "key": "k", "attempt": 2}
    JobLog(logger, known).warning("failed: %s", "why", extra={"user": {1}})

    [line] = text.getvalue().splitlines()
    told = json.loads(line)
    assert told.pop("timestamp").endswith("Z")
    assert told == {
        "event": "failed: why", "level": "warning", "logger": "disque_trio.test", "worker": 2,
        "user": "{1}", **known,
    }  # fmt: skip


def test_any_other_line_has_none() -> None:
    logger, text = lines(child="2")

    logger.warning("%d nodes answer", 3)

    assert text.getvalue().endswith(" [2] WARNING 3 nodes answer\n")
