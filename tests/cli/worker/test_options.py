from pathlib import Path
from typing import Final

import pytest

from disque_trio.cli.worker.options import OPTIONS, endpoint, parse

PAGE: Final = Path(__file__).parents[3] / "docs" / "worker-process.md"


def refusal(capsys: pytest.CaptureFixture[str], *argv: str, **environment: str) -> str:
    with pytest.raises(SystemExit) as stop:
        parse(argv, environment)
    assert stop.value.code == 2
    return capsys.readouterr().err.splitlines()[-1].removeprefix("disque-trio worker: error: ")


def test_an_app_is_enough() -> None:
    options = parse(["shop.tasks:app"], {})

    assert options.app == "shop.tasks:app"
    assert (options.concurrency, options.processes, options.drain) == (10, 1, 25.0)
    assert set(options.origins.values()) == {"default"}


def test_the_command_line_comes_before_the_environment_and_that_before_the_default() -> None:
    environment = {"DISQUE_WORKER_CONCURRENCY": "20", "DISQUE_WORKER_DRAIN": "7", "HOME": "/"}

    options = parse(["shop", "-c", "30"], environment)

    assert (options.concurrency, options.drain, options.abort) == (30, 7.0, 3.0)
    assert options.origins["concurrency"] == "command line"
    assert options.origins["drain"] == "DISQUE_WORKER_DRAIN"
    assert options.origins["abort"] == "default"


def test_a_check_needs_no_app(capsys: pytest.CaptureFixture[str]) -> None:
    options = parse(["--check"], {"DISQUE_WORKER_HEALTH": "[::1]:8080"})

    assert (options.app, options.check) == ("", True)
    assert endpoint(options.health) == ("::1", 8080)
    with pytest.raises(SystemExit):
        parse(["--burst"], {})
    assert "name the app whose tasks to run" in capsys.readouterr().err


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
        (["-c", "0"], "argument -c/--concurrency: 0 is no whole number of 1 or more"),
        (["--drain", "soon"], "argument --drain: soon is no number of seconds, 0 or more"),
        (["--drain", "nan"], "argument --drain: nan is no number of seconds, 0 or more"),
        (["--max-jobs", "-1"], "argument --max-jobs: -1 is no whole number of 0 or more"),
        (["--loop", "curio"], "argument --loop: curio is none of asyncio, trio"),
        (["-Q", "mail,,low"], "argument -Q/--queues: 'mail,,low' has an empty name"),
        (["-Q", "!"], "argument -Q/--queues: '!' has an empty name"),
        (
            ["--name", "my worker"],
            "argument --name: 'my worker' is no name: up to 100 ASCII characters without spaces",
        ),
        (
            ["--health", "8080"],
            "argument --health: '8080' is no address and port: 127.0.0.1:8080 or [::1]:8080",
        ),
        (["--check"], "--check asks the health port: give --health as the worker has it"),
        (["--concurency", "3"], "unrecognized arguments: --concurency 3"),
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
        "environment variable DISQUE_WORKER_THREADS: many is no whole number of 1 or more"
    )

    said = refusal(capsys, "shop", DISQUE_WORKER_BURST="yes")
    assert said == "environment variable DISQUE_WORKER_BURST: yes is neither 1 nor 0"


def test_the_help_names_each_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"], {})

    said = capsys.readouterr().out
    assert all(f"--{option.name}" in said for option in OPTIONS)


def test_the_page_has_each_option_with_its_default() -> None:
    rows = [
        line.split("|")[1:3] for line in PAGE.read_text().splitlines() if line.startswith("| `-")
    ]
    found = {names.replace("`", "").split(",")[-1].strip(): about.strip() for names, about in rows}

    in_words = {"queues": "all of the tasks", "url": "the app's"}
    assert found == {
        f"--{each.name}": in_words.get(each.name, each.default if each.metavar else "")
        for each in OPTIONS
    }
