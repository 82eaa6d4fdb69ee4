"""The frame of `sim`, `aof` and their like: what goes wrong is said, and has its exit status."""

import argparse
import errno
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import attrs
import pytest

from disque_trio.cli.frame import INTERRUPTED, TERMINATED, USAGE, run
from disque_trio.terminal.options import COUNT, PORT, SHARE, Command, Family, UsageError, option
from tests.client.fakenode import fake_node


@attrs.frozen(kw_only=True)
class Options:
    jobs: int = option("--jobs", COUNT, "how many", 1)
    subject: str = "a file"


def toys(play: Callable[[Options], int]) -> Family:
    return Family(
        about="Play with toys.",
        epilog="exit status:\n  0    well played",
        commands={
            "play": Command(record=Options, run=play, about="Play with one.", more="It may break.")
        },
    )


def playing(play: Callable[[], int], *words: str) -> int:
    return run("toys", toys(lambda _: play()), words or ["play"])


def raising(error: BaseException) -> Callable[[], int]:
    def play() -> int:
        raise error

    return play


def test_what_a_command_returns_is_the_exit_status() -> None:
    assert playing(lambda: 3) == 3


def test_help_shows_the_commands_and_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert playing(lambda: 3, "--help") == 0

    told = capsys.readouterr().out
    assert "usage: disque-trio toys [--version] [-h] COMMAND ..." in told
    assert "play      play with one" in told
    assert "  0    well played" in told


def test_help_of_a_command_leads_to_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert playing(lambda: 3, "play", "--help") == 0

    told = capsys.readouterr().out
    assert "Play with one. It may break." in told
    assert "Exit status: see 'disque-trio toys --help'." in told


def test_a_bad_option_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert playing(lambda: 3, "play", "--jobs", "0") == USAGE
    assert "'0' is not a whole number, 1 or more" in capsys.readouterr().err


def test_each_line_of_a_reason_has_the_program_in_front(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert playing(raising(UsageError("it is broken:\nmend it"))) == USAGE

    told = capsys.readouterr().err
    assert told == "disque-trio toys: it is broken:\ndisque-trio toys: mend it\n"


def test_ctrl_c_is_said_and_has_its_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert playing(raising(KeyboardInterrupt())) == INTERRUPTED
    assert capsys.readouterr().err == "disque-trio toys: interrupted\n"


def test_ctrl_c_within_nurseries_is_ctrl_c(capsys: pytest.CaptureFixture[str]) -> None:
    inner = BaseExceptionGroup("inner", [KeyboardInterrupt()])
    assert playing(raising(BaseExceptionGroup("outer", [inner]))) == INTERRUPTED
    assert capsys.readouterr().err == "disque-trio toys: interrupted\n"

    mixed = BaseExceptionGroup("mixed", [inner, ValueError()])
    with pytest.raises(BaseExceptionGroup) as raised:
        playing(raising(mixed))
    assert raised.value is mixed


def test_sigterm_ends_a_command_as_ctrl_c_does(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    finished = []

    def play() -> int:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            finished.append("kept")
        return 0

    assert playing(play) == TERMINATED
    assert finished == ["kept"]
    assert capsys.readouterr().err == "disque-trio toys: interrupted\n"
    assert signal.getsignal(signal.SIGTERM) == before


def test_sigterm_ends_a_job_in_the_background_of_a_shell() -> None:
    code = (
        "import signal; from tests.cli.test_frame import playing;"
        "signal.signal(signal.SIGINT, signal.SIG_IGN);"
        "playing(lambda: signal.raise_signal(signal.SIGTERM))"
    )

    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)

    assert ended.returncode == -signal.SIGTERM


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


@pytest.mark.sample(4)
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("line", ["", "--version", "--help", "queues --help", "queues list --help"])
def test_help_that_cannot_be_written_is_reported(line: str, unbuffered: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "disque_trio", *line.split()],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )

    assert done.stderr.endswith("cannot write the output: No space left on device\n")
    assert (done.stderr.count("\n"), done.returncode) == (1, USAGE)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("is_flushed", [True, False])
@pytest.mark.parametrize("is_buffered", [True, False])
def test_an_output_that_cannot_be_written_is_not_taken_for_a_file(
    is_buffered: bool,
    is_flushed: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with (
        open("/dev/full", "wb", buffering=-1 if is_buffered else 0) as raw,
        io.TextIOWrapper(raw, write_through=not is_buffered) as out,
    ):
        monkeypatch.setattr(sys, "stdout", out)

        def play() -> int:
            sys.stdout.write("much")
            if is_flushed:
                sys.stdout.flush()
            return 0

        assert playing(play) == USAGE
    told = "disque-trio toys: cannot write the output: No space left on device\n"
    assert capsys.readouterr().err == told


def test_a_command_may_be_called_without_an_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)

    assert playing(lambda: 3) == 3


@pytest.mark.parametrize("word", ["0", "65536", "-1", "http", "7711.0"])
def test_a_port_is_in_the_range_of_ports(word: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a port from 1 to 65535"):
        PORT(word)


@pytest.mark.parametrize("word", ["-0.1", "1.1", "half", "nan"])
def test_a_share_is_between_nothing_and_all(word: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a share from 0 to 1"):
        SHARE(word)


def test_sound_words_are_taken() -> None:
    assert (PORT("7711"), COUNT("3"), SHARE("0.5")) == (7711, 3, 0.5)


def test_sigterm_ends_the_client_which_goes_on_after_ctrl_c() -> None:
    with fake_node({}) as node:
        words = [sys.executable, "-m", "disque_trio", "cli", "-p", str(node.port)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            client.stdin.write(b"PING\n")
            client.stdin.flush()
            assert client.stdout.readline() == b"PONG\n"
            client.terminate()
            assert client.wait(60) == -signal.SIGTERM
