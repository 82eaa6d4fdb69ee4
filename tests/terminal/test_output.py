"""Nothing that others have written commands the terminal."""

import ast
import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from disque_trio.terminal import consoles, output
from disque_trio.terminal.arguments import Parser
from tests.trees import HOME, modules

HOSTILE = "a\x1b[2J\x1b]0;title\x07\x9b31m\u202e\nb\r\x7f"
ESCAPED = r"a\x1b[2J\x1b]0;title\a\x9b31m\u202e\nb\r\x7f"
WRITERS = {
    "disque_trio/terminal/output.py": "writes what it has cleaned",
    "disque_trio/terminal/consoles.py": "cleans what Rich writes",
    "disque_trio/cli/__init__.py": "gives the session where to write",
    "disque_trio/cli/session.py": "writes replies in the form that was asked for (cli.formats)",
    "disque_trio/cli/manual.py": "lays out pages of the package in memory",
    "disque_trio/cli/worker/logs.py": "is the handler of the worker's log, whose lines it cleans",
}
"""The only modules of the command lines that may write, each with the reason."""


def places(path: Path) -> Iterator[str]:
    """Where a module writes to the terminal by itself."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called == "print" or called.rpartition(".")[2] in ("Console", "ArgumentParser"):
                yield f"{called}, line {node.lineno}"
        if isinstance(node, ast.Attribute) and node.attr in ("write", "writelines", "buffer"):
            of = ast.unparse(node.value)
            if of.endswith(("stdout", "stderr")):
                yield f"{of}.{node.attr}, line {node.lineno}"


def test_the_command_lines_write_through_one_module() -> None:
    serving = [HOME / "disque_trio" / "serving" / name for name in ("up.py", "server.py")]
    paths = [*modules(HOME / "disque_trio" / "cli"), *serving]
    found = {str(path.relative_to(HOME)): list(places(path)) for path in paths}

    assert {name: at for name, at in found.items() if at and name not in WRITERS} == {}


def test_a_place_that_writes_by_itself_is_found(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "print(1)\nsys.stdout.write(x)\nsys.stderr.writelines(x)\nConsole()\nrich.console.Console()"
        "\nargparse.ArgumentParser()"
    )

    assert len(list(places(path))) == 6


def test_lines_tables_facts_and_complaints_are_clean(capsys: pytest.CaptureFixture[str]) -> None:
    output.say(HOSTILE)
    output.say_lines(f"one\n{HOSTILE}")
    output.say_table(("QUEUE", HOSTILE), [(HOSTILE, 1)])
    output.say_facts([("body", HOSTILE)])
    output.complain(HOSTILE)
    output.complain_lines(f"one\n{HOSTILE}")
    shown = consoles.console(width=200)
    shown.print(HOSTILE, markup=False)

    said = capsys.readouterr()
    for each in said.out + said.err:
        assert each.isprintable() or each == "\n"
    assert said.err == f"{ESCAPED}\none\n" + ESCAPED.replace(r"\n", "\n") + "\n"


def test_an_error_of_a_command_line_is_clean(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser(prog="disque-trio")
    parser.add_subparsers().add_parser("queues")

    for words in ([HOSTILE], ["queues", HOSTILE]):
        with pytest.raises(SystemExit):
            parser.parse_args(words)
        said = capsys.readouterr().err
        assert "title" in said
        assert all(each.isprintable() or each == "\n" for each in said)


def test_json_has_the_text_and_no_character_that_commands_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output.say_json({"body": HOSTILE, "name": "日本"})

    said = capsys.readouterr().out
    assert json.loads(said) == {"body": HOSTILE, "name": "日本"}
    assert said.rstrip("\n").isprintable()
    assert "日本" in said


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_what_the_encoding_lacks_is_written_as_escapes(
    errors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    out = io.TextIOWrapper(written, encoding="ascii", errors=errors)
    monkeypatch.setattr(sys, "stdout", out)

    output.escape_the_rest()
    output.say("日本 😀")
    output.say_json({"name": "日本 é 😀"})
    output.flush()

    line, told = written.getvalue().decode().splitlines()
    assert line == r"\u65e5\u672c \U0001f600"
    assert json.loads(told) == {"name": "日本 é 😀"}


def test_a_console_leaves_the_end_of_a_pipe_to_the_command_line() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    out = os.fdopen(writer, "w")
    shown = consoles.console(out)

    with pytest.raises(BrokenPipeError):
        shown.print("much")
    with contextlib.suppress(BrokenPipeError):
        out.close()


def test_long_names_are_cut_to_the_width_and_figures_are_not() -> None:
    rows = [["x" * 3000, 12345, "y" * 50], ["mails", 1, "z"]]

    lines = output.lines_of(("QUEUE", "JOBS", "PAUSED"), rows, 60)

    assert max(map(output.width_of, lines)) <= 60
    assert "12345" in lines[1]
    assert lines[1].count("…") == 2
    assert lines[2].startswith("mails ")


def test_ids_are_not_cut() -> None:
    lines = output.lines_of(("ID", "REASON"), [["D-" + "0" * 38, "r" * 500]], 80)

    assert "D-" + "0" * 38 in lines[1]
    assert len(lines[1]) == 80


def test_without_a_terminal_nothing_is_cut_and_one_name_does_not_widen_all_lines() -> None:
    lines = output.lines_of(("QUEUE", "JOBS"), [["x" * 3000, 1], ["mails", 2]])

    assert "x" * 3000 in lines[1]
    assert len(lines[2]) < 80


def test_wide_characters_take_two_columns() -> None:
    assert output.width_of("日本") == 4
    assert output.cut("日本語", 5) == "日本…"
    assert output.cut("e\u0301te", 3) == "e\u0301te"
