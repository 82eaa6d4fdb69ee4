"""What each file of the package looks like (CONTRIBUTING.md, "House rules")."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from tests.trees import HOME, PACKAGE, every_file, modules, tree

MAX_FUNCTION_LINES: Final = 60
MAX_FILE_LINES: Final = 800


@pytest.mark.parametrize("room", ["disque_trio", "tests", "benchmarks", "compiling"])
def test_files_fit_the_eye(room: str) -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in modules(HOME / room)}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_FILE_LINES} == {}


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@every_file
def test_functions_fit_the_eye(path: Path) -> None:
    for function in functions(path):
        assert function.end_lineno is not None
        lines = function.end_lineno - function.lineno + 1
        assert lines <= MAX_FUNCTION_LINES, f"{function.name} has {lines} lines"


@every_file
def test_imports_stand_at_the_top_and_name_what_they_bring(path: Path) -> None:
    for function in functions(path):
        for node in ast.walk(function):
            assert not isinstance(node, ast.Import | ast.ImportFrom), function.name
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert all(alias.name != "*" for alias in node.names)


@every_file
def test_nothing_is_left_to_do_without_an_issue(path: Path) -> None:
    for line in path.read_text().splitlines():
        assert not re.search(r"\b(TODO|FIXME|XXX)\b(?!.*#\d)", line), line


@every_file
def test_only_the_command_line_prints(path: Path) -> None:
    if not {PACKAGE / "cli", PACKAGE / "terminal"} & set(path.parents):
        for node in ast.walk(tree(path)):
            assert not (isinstance(node, ast.Call) and ast.unparse(node.func) == "print")


_PLURAL: Final = re.compile(r" (\w+ )?[a-z]+s\b")


@every_file
def test_numbers_of_things_are_counted(path: Path) -> None:
    """1 job, not 1 jobs: texts use `terminal.counting.counted`."""
    if PACKAGE / "statemachine" in path.parents:
        return  # The lowest rung cannot import it: it has few texts with numbers.
    found = []
    for text in ast.walk(tree(path)):
        if isinstance(text, ast.JoinedStr):
            found += [ast.unparse(text) for pair in pairwise(text.values) if _is_plural(*pair)]
        elif isinstance(text, ast.Constant) and isinstance(text.value, str):
            found += re.findall(r"(?:%d|\{\w*:,\}) (?!is\b)[a-z]+s\b.*", text.value)
    assert not found


def _is_plural(value: ast.expr, after: ast.expr) -> bool:
    """A number with separators, or a length, and a noun in the plural."""
    if not (isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant)):
        return False
    is_number = value.format_spec is not None and ast.unparse(value.format_spec) == "f','"
    is_length = ast.unparse(value.value).startswith("len(")
    return (is_number or is_length) and bool(_PLURAL.match(str(after.value)))


_NO_TERMS: Final = frozenset({"told", "said", "heard", "given", "tells", "hears", "says"})
_PROMISED: Final = {
    "worker/operating/plans.py": {"says"},  # a key of the API
    "statemachine/messages.py": {"told", "said"},  # recorded frames have them
}


@every_file
def test_names_are_terms_and_no_participles_of_telling(path: Path) -> None:
    """A reply, a report, a row or a value, not what is told, said or given."""
    found = set()
    for node in ast.walk(tree(path)):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
                | ast.arg(arg=name)
            ):
                found.add(name.strip("_"))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name.strip("_"))
    assert found & _NO_TERMS <= _PROMISED.get(path.relative_to(PACKAGE).as_posix(), set())


@every_file
def test_what_has_a_length_says_whether_it_is_true(path: Path) -> None:
    """The compiled form asks `__bool__` alone of a value that may be None."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ClassDef):
            methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            assert "__len__" not in methods or "__bool__" in methods, node.name


@every_file
def test_everything_public_says_what_it_is(path: Path) -> None:
    module = tree(path)
    assert ast.get_docstring(module), "the module"
    for node in public(module):
        assert ast.get_docstring(node), node.name


def public(
    parent: ast.Module | ast.ClassDef,
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Classes, functions and methods that others may use. What a class takes over from another
    is described there."""
    for node in parent.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef) and not node.bases:
                yield from public(node)
