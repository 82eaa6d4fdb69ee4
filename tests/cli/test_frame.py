"""The frame of `sim`, `aof` and their like: what goes wrong is said, and has its exit status."""

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence

import attrs
import pytest

from disque_trio.cli import frame
from disque_trio.cli.frame import INTERRUPTED, USAGE, Family, UsageError, run


@attrs.frozen(kw_only=True)
class Options:
    command: str
    jobs: int = 1

    def subject(self) -> str:
        return "a file"


def parse(arguments: Sequence[str]) -> Options:
    family = Family("toys", "Play with toys.", "exit status:\n  0    well played")
    parser = family.command("play", "Play with one.", "It may break.")
    parser.add_argument("--jobs", type=frame.count)
    return Options(**vars(family.parse(arguments)))


def playing(play: Callable[[], int]) -> int:
    return run("toys", ["play"], parse, {"play": lambda _: play()})


def raising(error: BaseException) -> Callable[[], int]:
    def play() -> int:
        raise error

    return play


def test_what_a_command_returns_is_the_exit_status() -> None:
    assert playing(lambda: 3) == 3


def test_help_shows_the_commands_and_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("toys", ["--help"], parse, {}) == 0

    told = capsys.readouterr().out
    assert "usage: disque-trio toys [-h] COMMAND ..." in told
    assert "play      play with one" in told
    assert "  0    well played" in told


def test_help_of_a_command_leads_to_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("toys", ["play", "--help"], parse, {}) == 0

    told = capsys.readouterr().out
    assert "Play with one. It may break." in told
    assert "Exit status: see 'disque-trio toys --help'." in told


def test_a_bad_option_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("toys", ["play", "--jobs", "0"], parse, {}) == USAGE
    assert "0 is no whole number of 1 or more" in capsys.readouterr().err


def test_each_line_of_a_reason_has_the_program_in_front(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert playing(raising(UsageError("it is broken:\nmend it"))) == USAGE

    told = capsys.readouterr().err
    assert told == "disque-trio toys: it is broken:\ndisque-trio toys: mend it\n"


def test_ctrl_c_is_said_and_has_its_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert playing(raising(KeyboardInterrupt())) == INTERRUPTED
    assert capsys.readouterr().err == "disque-trio toys: interrupted\n"


@pytest.mark.parametrize(
    ("name", "told"),
    [("/toys", "/toys: No space left on device"), (None, "a file: No space left on device")],
)
def test_an_error_of_the_system_names_the_file(
    name: str | None, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)

    assert playing(raising(error)) == USAGE
    assert capsys.readouterr().err == f"disque-trio toys: {told}\n"


def test_a_reader_that_has_gone_gets_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)

        def play() -> int:
            out.write("much")
            out.flush()
            return 0

        assert playing(play) == USAGE


@pytest.mark.parametrize("word", ["0", "65536", "-1", "http", "7711.0"])
def test_a_port_is_in_the_range_of_ports(word: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no port: 1 to 65535"):
        frame.port(word)


@pytest.mark.parametrize("word", ["-0.1", "1.1", "half", "nan"])
def test_a_share_is_between_nothing_and_all(word: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no share from 0 to 1"):
        frame.share(word)


def test_sound_words_are_taken() -> None:
    assert (frame.port("7711"), frame.count("3"), frame.share("0.5")) == (7711, 3, 0.5)
