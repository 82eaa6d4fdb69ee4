import io
import json
import re
from pathlib import Path

import pytest

from disque_trio.serving.logs import open_log
from disque_trio.statemachine.config import Config


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_people_get_one_line_per_event() -> None:
    stream = io.StringIO()

    open_log(Config(), stream).notice("node joined", address="127.0.0.1:7712", why="a b")

    stamp = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}"
    line = stream.getvalue()
    assert re.fullmatch(
        stamp + r" notice  node joined  address=127\.0\.0\.1:7712 why='a b'\n", line
    )


def test_what_a_client_sends_stays_on_its_line() -> None:
    stream = io.StringIO()

    open_log(Config(), stream).warning("refused", error="x\nforged\x1b[31m")

    assert stream.getvalue().count("\n") == 1
    assert "\x1b" not in stream.getvalue()


def test_a_terminal_gets_colours() -> None:
    stream = Terminal()

    open_log(Config(), stream).warning("node failed")

    assert "\x1b[1;33mwarning\x1b[0m node failed" in stream.getvalue()


def test_machines_get_json() -> None:
    stream = Terminal()

    open_log(Config(log_format="json"), stream).bind(port=7711).notice("node joined", node="ab")

    record = json.loads(stream.getvalue())
    assert record.pop("timestamp").endswith("Z")
    assert record == {"event": "node joined", "level": "notice", "port": 7711, "node": "ab"}


@pytest.mark.parametrize(
    ("level", "said"),
    [("debug", "dvnw"), ("verbose", "vnw"), ("notice", "nw"), ("warning", "w")],
)
def test_levels_are_the_original_s(level: str, said: str) -> None:
    stream = io.StringIO()
    log = open_log(Config(loglevel=level, log_format="json"), stream)

    log.debug("d")
    log.verbose("v")
    log.notice("n")
    log.warning("w")

    assert "".join(json.loads(line)["event"] for line in stream.getvalue().splitlines()) == said


def test_the_level_changes_for_whatever_was_bound_before() -> None:
    stream = io.StringIO()
    log = open_log(Config(), stream)
    bound = log.bind(port=1)

    log.set_level("debug")
    bound.debug("shown")

    assert "shown" in stream.getvalue()


def test_a_log_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    log = open_log(Config(logfile=str(tmp_path / "missing" / "log")))

    log.warning("lost")
