import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from disque_trio.cli import worker
from disque_trio.cli.worker.loading import load
from disque_trio.terminal.options import UsageError
from disque_trio.worker import App

TASKS = """
from disque_trio.worker import App
app = App()
other = App()
name = "shop"
@app.task(queue="mail")
async def send() -> None: ...
@app.task(queue="slow")
async def wait() -> None: ...
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current directory, with modules of which nothing remains."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "goods.py").write_text(TASKS)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def refusal(name: str) -> str:
    with pytest.raises(UsageError) as raised:
        load(name)
    return str(raised.value)


@pytest.mark.usefixtures("folder")
def test_a_module_of_the_current_directory_is_found_and_its_app_too() -> None:
    app = load("goods")

    assert isinstance(app, App)
    assert load("goods:app") is app
    assert load("goods:other") is not app


def test_who_names_no_module_is_told_where_was_looked(folder: Path) -> None:
    where = f"neither in {folder} nor among installed packages"
    assert refusal("nothing:app") == f"there is no module nothing, {where}"
    assert refusal("goods.tasks") == f"there is no module goods.tasks, {where}"
    assert refusal(":app") == "'' is not a module: give one, such as shop.tasks:app"


@pytest.mark.usefixtures("folder")
def test_who_names_no_app_is_told_which_there_are() -> None:
    assert refusal("goods:ap") == "goods has no ap; it has goods:app, goods:other"
    assert refusal("goods:name") == (
        "goods:name is not an App, but has the type str; it has goods:app, goods:other"
    )
    assert refusal("json") == "json has no app; it has no App"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_of_the_kind", "No module named 'nothing_of_the_kind'"),
        ("1 / 0", "division by zero"),
        ("def", "invalid syntax"),
        ("exit(3)", "SystemExit: 3"),
    ],
)
def test_a_module_that_fails_is_shown_with_its_traceback(
    text: str, said: str, folder: Path
) -> None:
    (folder / "bad.py").write_text(text)

    found = refusal("bad")

    assert found.startswith("bad cannot be imported:\nTraceback")
    assert said in found
    assert "bad.py" in found


@pytest.mark.usefixtures("folder")
def test_explain_tells_the_queues_and_where_each_value_comes_from(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISQUE_WORKER_CONCURRENCY", "20")

    assert worker.main(["goods", "-Q", "!slow", "--explain"]) == 0

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["app", "goods"] in lines
    assert ["queues", "mail", "command", "line"] in lines
    assert ["concurrency", "20", "DISQUE_WORKER_CONCURRENCY"] in lines
    assert ["drain", "25.0", "default"] in lines


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["nothing"], "there is no module nothing"),
        (["goods", "-Q", "!x"], "-Q !x: there is no queue x to omit; there are mail, slow"),
        (
            ["goods:other", "-Q", "mail"],
            "-Q mail: goods:other has no tasks, so it runs only jobs of",
        ),
        (["goods:other"], "goods:other has no queue to take jobs from"),
        (["goods", "--url", "redis://x"], "'redis://x' is not the address of a cluster"),
    ],
)
def test_what_cannot_work_ends_with_2_and_says_why(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert worker.main(argv) == 2
    assert said in capsys.readouterr().err
