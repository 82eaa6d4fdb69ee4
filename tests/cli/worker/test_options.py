from collections.abc import Mapping, Sequence

import pytest

from disque_trio.cli.worker import PROGRAM
from disque_trio.cli.worker.options import Options
from disque_trio.terminal import options as arguments
from disque_trio.terminal.options import Call, options_of


def call(argv: Sequence[str], environment: Mapping[str, str]) -> Call[Options]:
    return arguments.parse(PROGRAM, "disque-trio worker", argv, environment)


def parse(argv: Sequence[str], environment: Mapping[str, str]) -> Options:
    return call(argv, environment).options


def refusal(capsys: pytest.CaptureFixture[str], *argv: str, **environment: str) -> str:
    with pytest.raises(SystemExit) as stop:
        parse(argv, environment)
    assert stop.value.code == 2
    return capsys.readouterr().err.splitlines()[0].removeprefix("disque-trio worker: ")


def test_an_app_is_enough() -> None:
    options = parse(["shop.tasks:app"], {})

    assert options.app == "shop.tasks:app"
    assert (options.concurrency, options.processes, options.drain) == (10, 1, 25.0)
    assert {name for name, origin in call(["shop"], {}).origins.items() if origin != "default"} == {
        "app"
    }


def test_the_command_line_comes_before_the_environment_and_that_before_the_default() -> None:
    environment = {"DISQUE_WORKER_CONCURRENCY": "20", "DISQUE_WORKER_DRAIN": "7", "HOME": "/"}

    found = call(["shop", "-c", "30"], environment)
    options, origins = found.options, found.origins

    assert (options.concurrency, options.drain, options.abort) == (30, 7.0, 3.0)
    assert origins["concurrency"] == "command line"
    assert origins["drain"] == "DISQUE_WORKER_DRAIN"
    assert origins["abort"] == "default"


def test_a_check_needs_no_app(capsys: pytest.CaptureFixture[str]) -> None:
    options = parse(["--check"], {"DISQUE_WORKER_HEALTH": "[::1]:8080"})

    assert (options.app, options.check) == ("", True)
    assert options.health == ("::1", 8080)
    with pytest.raises(SystemExit):
        parse(["--burst"], {})
    assert "give the app whose tasks to run" in capsys.readouterr().err


def test_a_switch_may_be_set_and_cleared_in_the_environment() -> None:
    assert parse(["shop", "--burst"], {}).burst
    assert parse(["shop"], {"DISQUE_WORKER_BURST": "1"}).burst
    assert not parse(["shop"], {"DISQUE_WORKER_BURST": "0"}).burst


def test_the_nodes_may_stand_in_disque_url() -> None:
    assert parse(["shop"], {"DISQUE_URL": "disque://n1"}).url == "disque://n1"


def test_queues_are_named_in_one_word() -> None:
    assert parse(["shop", "-Q", "mail, video,!low"], {}).queues == ("mail", "video", "!low")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["-c", "0"], "argument -c/--concurrency: '0' is not a whole number, 1 or more"),
        (["--drain", "soon"], "argument --drain: 'soon' is not a number of seconds, 0 or more"),
        (["--drain", "nan"], "argument --drain: 'nan' is not a number of seconds, 0 or more"),
        (["--max-jobs", "-1"], "argument --max-jobs: '-1' is not a whole number, 0 or more"),
        (["--loop", "curio"], "argument --loop: 'curio' is not one of asyncio, trio"),
        (
            ["-Q", "mail,,low"],
            "argument -Q/--queues: 'mail,,low' is not a list of queues: mail,video",
        ),
        (
            ["-Q", "!"],
            "argument -Q/--queues: '!' is not a list of queues: mail,video",
        ),
        (
            ["--name", "my worker"],
            "argument --name: 'my worker' is not a name: up to 100 ASCII characters without spaces",
        ),
        (
            ["--health", "8080"],
            "argument --health: '8080' is not an address and a port: 127.0.0.1:8080 or [::1]:8080",
        ),
        (["--check"], "--check queries the health port: give the --health of the worker"),
        (
            ["--concurency", "3"],
            "unrecognized arguments: --concurency 3; did you mean --concurrency?",
        ),
    ],
)
def test_a_bad_option_is_named_with_its_value(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(capsys, "shop", *argv) == said


def test_a_bad_value_in_the_environment_is_named_with_its_variable(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = refusal(capsys, "shop", DISQUE_WORKER_THREADS="many")
    assert said == (
        "environment variable DISQUE_WORKER_THREADS: 'many' is not a whole number, 1 or more"
    )

    said = refusal(capsys, "shop", DISQUE_WORKER_BURST="yes")
    assert said == "environment variable DISQUE_WORKER_BURST: 'yes' is not 1 or 0"


def test_the_help_names_each_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"], {})

    said = capsys.readouterr().out
    assert all(option.name in said for _, option in options_of(Options))
