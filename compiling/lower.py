"""Lowers the source for mypyc: attrs records become native classes. Text in, text out.

mypyc takes an attrs class for an ordinary Python class, whose fields it reaches more slowly than
the interpreter does. So what attrs would make at run time is written out here: `__init__`, and a
base class (`plain`) for the rest.

Every statement stays on its line, so that tracebacks and mypy's messages fit the source. For that
the class statement and its docstring move up by one, to the line of the decorator, and `__init__`
takes the line that becomes free.
"""

import ast
import re
from collections.abc import Iterable, Mapping

import attrs

from compiling.shapes import (
    Field,
    LoweringError,
    Shape,
    all_fields,
    decorator,
    default_nodes,
    field_nodes,
    shapes,
)

PLAIN = "disque_trio.plain_records"
"""Where `plain.py` stands in the lowered package."""
_IMPORT = "import disque_trio.plain_records as _plain; from typing import ClassVar as _ClassVar"
_OPEN = (
    "import disque_trio.plain_records as _plain",
    "@_plain.mypyc_attr(allow_interpreted_subclasses=True)",
)


def lower_all(sources: Mapping[str, str], extended: Iterable[str] = ()) -> dict[str, str]:
    """The lowered texts of these modules. `extended` are the full names of classes that have
    subclasses outside of them."""
    trees = {module: ast.parse(source) for module, source in sources.items()}
    known: dict[str, Shape] = {}
    for module, tree in trees.items():
        known |= shapes(module, tree)
    return {
        module: _Lowering(module, source, trees[module], known).run(set(extended))
        for module, source in sources.items()
    }


@attrs.frozen
class _Edit:
    """Something else in place of a piece of the source."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


class _Lowering:
    """One module on its way."""

    def __init__(
        self, module: str, source: str, tree: ast.Module, known: Mapping[str, Shape]
    ) -> None:
        self._module = module
        self._tree = tree
        self._known = known
        # Columns of a syntax tree count bytes.
        self._lines = source.encode().split(b"\n")
        self._edits: list[_Edit] = []
        self._moves: list[tuple[int, int, str]] = []
        """First and last line of what moves up, and what comes behind it."""

    def run(self, extended: set[str]) -> str:
        """The lowered text."""
        for node in self._tree.body:
            if isinstance(node, ast.ClassDef):
                if f"{self._module}.{node.name}" in extended:
                    self._open(node)
                if decorator(node) is not None:
                    self._record(node)
        self._evolve()
        for edit in sorted(self._edits, key=lambda edit: edit.start, reverse=True):
            self._apply(edit)
        for first, last, text in self._moves:
            self._lines[first - 1 : last] = [*self._lines[first:last], text.encode()]
        return self._imports(b"\n".join(self._lines).decode())

    def _record(self, node: ast.ClassDef) -> None:
        shape = self._known[f"{self._module}.{node.name}"]
        fields = all_fields(shape, self._known)
        if ast.get_docstring(node) is None:
            raise LoweringError(f"line {node.lineno}: {node.name} has no docstring")
        self._base(node, shape)
        self._fields(node, fields)
        for method in default_nodes(node).values():
            self._remove(method.decorator_list[0], before=1)
        # A class without fields of its own has the `__init__` of its base.
        text = _init(shape, fields) if shape.init and shape.own else ""
        self._moves.append((node.decorator_list[0].lineno, node.body[0].end_lineno or 0, text))

    def _base(self, node: ast.ClassDef, shape: Shape) -> None:
        if shape.bases:
            return
        kind = "Frozen" if shape.frozen else "Record" if shape.eq else "Plain"
        start = node.col_offset + len(f"class {node.name}")
        self._edits.append(_Edit((node.lineno, start), (node.lineno, start), f"(_plain.{kind})"))

    def _fields(self, node: ast.ClassDef, fields: list[Field]) -> None:
        """Field statements without their defaults; the first one tells of all of them."""
        told = _told(fields)
        for _, each in field_nodes(node):
            self._insert(each, told)
            told = ""
            if each.value is not None:
                start = (each.annotation.end_lineno or 0, each.annotation.end_col_offset or 0)
                self._edits.append(_Edit(start, _end(each.value), ""))

    def _open(self, node: ast.ClassDef) -> None:
        """Let it have subclasses that are not compiled. Two lines before a class are free."""
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        before = slice(max(first - 3, 0), first - 1)
        is_other = bool(node.decorator_list) and decorator(node) is None
        if is_other or self._lines[before] != [b"", b""]:
            raise LoweringError(f"line {node.lineno}: no room for a decorator")
        self._lines[before] = [line.encode() for line in _OPEN]

    def _evolve(self) -> None:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "attrs.evolve":
                self._edits.append(_Edit(_start(node), _end(node), "_plain.evolve"))

    def _insert(self, node: ast.stmt, text: str) -> None:
        if text:
            self._edits.append(_Edit(_start(node), _start(node), text + "; "))

    def _remove(self, node: ast.expr, before: int) -> None:
        line, column = _start(node)
        self._edits.append(_Edit((line, column - before), _end(node), ""))

    def _apply(self, edit: _Edit) -> None:
        """Put a text in place of another that may have more lines, which stay empty."""
        (first, start), (last, end) = edit.start, edit.end
        head, tail = self._lines[first - 1][:start], self._lines[last - 1][end:]
        self._lines[first - 1] = head + edit.text.encode() + tail
        for line in range(first, last):
            self._lines[line] = b""

    def _imports(self, text: str) -> str:
        """What the text needs, on the line of `import attrs`, which goes if nobody needs it."""
        needs = _IMPORT if "_plain." in text else ""
        if re.search(r"^import attrs$", text, flags=re.MULTILINE) is None:
            return text
        keeps = "import attrs" if re.search(r"\battrs\.[a-zA-Z]", text) else ""
        line = "; ".join(filter(None, (needs, keeps)))
        return re.sub(r"^import attrs$", line, text, count=1, flags=re.MULTILINE)


def _told(fields: list[Field]) -> str:
    """What attrs tells of a class: its fields, and what a class pattern takes."""
    shown = "".join(_field(field) + ", " for field in fields)
    matched = "".join(f"{f.name!r}, " for f in fields if f.init and not f.kw_only)
    return (
        f"__attrs_attrs__: _ClassVar[tuple[_plain.Field, ...]] = ({shown}); "
        f"__match_args__: _ClassVar[tuple[str, ...]] = ({matched})"
    )


def _field(field: Field) -> str:
    told = [repr(field.name)]
    if field.default is not None:
        told.append(f"default={field.default}")
    told += [f"{name}=False" for name in ("init", "repr") if not getattr(field, name)]
    return f"_plain.Field({', '.join(told)})"


def _init(shape: Shape, fields: list[Field]) -> str:
    taken = [field for field in fields if field.init]
    words = ["self", *(_parameter(field) for field in taken if not field.kw_only)]
    if named := [_parameter(field) for field in taken if field.kw_only]:
        words += ["*", *named]
    steps = [step for field in fields if (step := _step(field))]
    if shape.finishes:
        steps.append("self.__attrs_post_init__()")
    return f"    def __init__({', '.join(words)}) -> None: {'; '.join(steps)}"


def _parameter(field: Field) -> str:
    if field.factory is not None:
        return f"{field.alias}: {field.annotation + ' | None'!r} = None"
    default = "" if field.default is None else f" = {field.default}"
    return f"{field.alias}: {field.annotation!r}{default}"


def _step(field: Field) -> str:
    """How the field gets its value; nothing if it is set later."""
    value: str | None = field.alias
    if field.factory is not None:
        given = f"{field.alias} if {field.alias} is not None else "
        value = (given if field.init else "") + field.factory
    elif not field.init:
        value = field.default
    return "" if value is None else f"self.{field.name} = {value}"


def _start(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0
