"""Mutants that operators make: one small change at one place of a function, drawn by a seed.

Five operators: `negate` a condition, `drop` a statement, `bound` (off by one: `<` for `<=`, 3 for
2), `swap` two arguments of the same type, omit a `field` that has a default. As in other tools,
nothing is changed that cannot matter to a promise: text for people, traces and logs, assertions,
annotations (`_ARID`). A line is changed once at most. Which mutants are drawn depends on their
names only, so a change elsewhere in the package draws no others.
"""

import ast
import difflib
import inspect
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import attrs

from tests.sim.mutants.mutant import PACKAGE
from tests.sim.mutants.swapping import module_of

ROOMS: Final = ("statemachine", "worker", "driver", "storage", "wire")
_ARID: Final = re.compile(
    r"statemachine/(commands/(clients|config|greeting|info|introspection|latency|rows|server|slowlog"
    r"|table|traces|unlisted|usage)|backlog|config|directives|suggestions|invariants|jobtraces|latency"
    r"|metrics|nodesfile|redaction|refusals|slowlog|stats|tally|timing|trace|values|versions|wording)"
    r"|driver/operator_log|worker/(comparing|describing|precedence|reporting|runlog|stacks|workerlog)"
    r"|worker/(operating|interop|contrib)/.*"
)
"""Files of what is told to people, measured or traced, and of what checks the others."""
_ARID_CALLS: Final = re.compile(
    r"(trace|metrics|latency|log|logger|_log|logging|runlog|workerlog|warnings)\.|.*\.(debug|info|warning|exception)$"
)
_FLIPPED: Final = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_SMALL: Final = 256
"""Off by one in greater numbers is no mistake that matters."""


@attrs.frozen(kw_only=True)
class Drawn:
    """One change of one place."""

    file: str
    function: str
    operator: str
    number: int
    """Of those of this operator in this function."""
    line: int
    statement: int
    """The line of the statement around it."""
    begin: int
    end: int
    """Bytes of the source that are replaced."""
    text: str

    @property
    def name(self) -> str:
        """Without the line: this changes only if its function does."""
        module = self.file.removesuffix(".py")
        return f"{module}:{self.function}:{self.operator}:{self.number}"

    @property
    def path(self) -> Path:
        """The file."""
        return PACKAGE / self.file

    @property
    def text_of_line(self) -> str:
        """The line that is changed, as it is in the intact module, without its indentation."""
        return self.path.read_text("utf-8").splitlines()[self.line - 1].strip()

    def source(self) -> str:
        """The module with the change."""
        source = self.path.read_bytes()
        return (source[: self.begin] + self.text.encode() + source[self.end :]).decode()

    def diff(self) -> str:
        """What is changed, as a patch."""
        before, after = self.path.read_text("utf-8").splitlines(), self.source().splitlines()
        name = f"disque_trio/{self.file}"
        return "\n".join(difflib.unified_diff(before, after, name, name, lineterm="", n=2))


def draw(count: int, seed: int, files: Iterable[Path] | None = None) -> list[Drawn]:
    """So many of all that there are, of different lines."""
    chosen: dict[tuple[str, int], tuple[bytes, Drawn]] = {}
    for path in files or sources():
        for each in candidates(path):
            rank = sha256(f"{seed}/{each.name}".encode()).digest()
            place = each.file, each.line
            if place not in chosen or rank < chosen[place][0]:
                chosen[place] = rank, each
    ranked = sorted(chosen.values(), key=lambda pair: pair[0])
    return [each for _, each in ranked[:count]]


def named(name: str) -> Drawn | None:
    """The mutant of this name, if today's source has one."""
    path = PACKAGE / f"{name.partition(':')[0]}.py"
    found = candidates(path) if path in sources() else []
    return next((each for each in found if each.name == name), None)


def sources() -> list[Path]:
    """The files of which mutants are made."""
    found = [path for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py"))]
    return [path for path in found if not _ARID.fullmatch(_below(path).removesuffix(".py"))]


def _below(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def candidates(path: Path) -> list[Drawn]:
    """All mutants of a file."""
    source = path.read_text("utf-8")
    walk = _Walk(source, _below(path), vars(import_module(module_of(path))))
    walk.visit(ast.parse(source))
    return walk.found


class _Walk(ast.NodeVisitor):
    """Finds them, function by function."""

    def __init__(self, source: str, file: str, names: dict[str, Any]) -> None:
        self.found: list[Drawn] = []
        self._source = source.encode()
        self._file = file
        self._names = names
        lengths = [len(line) for line in self._source.splitlines(keepends=True)]
        self._starts = [sum(lengths[:at]) for at in range(len(lengths))]
        self._function = ""
        self._counts: dict[str, int] = {}

    def visit_Module(self, tree: ast.Module) -> None:
        for node in tree.body:
            inside = node.body if isinstance(node, ast.ClassDef) else [node]
            prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
            for each in inside:
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and (
                    not each.name.startswith("__") or each.name in ("__init__", "__call__")
                ):
                    self._function, self._counts = prefix + each.name, {}
                    self._body(each.body)

    def _body(self, body: list[ast.stmt]) -> None:
        for at, each in enumerate(body):
            if not _is_arid(each):
                self._statement(each, is_last=at == len(body) - 1)

    def _statement(self, node: ast.stmt, *, is_last: bool) -> None:
        if _may_go(node, is_last=is_last):
            self._add("drop", node, node, "pass")
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "args", "decorator_list", "type_params"):
                continue
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.stmt):
                    continue
                if isinstance(each, ast.ExceptHandler | ast.match_case):
                    self._body(each.body)
                elif isinstance(each, ast.AST):
                    self._expression(each, node)
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                self._body(value)
        if isinstance(node, ast.If | ast.While):
            self._negate(node.test, node)

    def _expression(self, root: ast.AST, statement: ast.stmt) -> None:
        for node in _places(root):
            for each in _conditions(node, statement):
                self._negate(each, statement)
            match node:
                case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]):
                    self._flip(left, node.comparators[0], statement)
                case ast.Constant(value=int(value)) if type(value) is int and value < _SMALL:
                    self._add("bound", node, statement, str(value + 1))
                case ast.Call():
                    self._call(node, statement)

    def _negate(self, test: ast.expr, statement: ast.stmt) -> None:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self._add("negate", test, statement, f"({self._text(test.operand)})")
        elif not isinstance(test, ast.BoolOp):
            self._add("negate", test, statement, f"not ({self._text(test)})")

    def _flip(self, left: ast.expr, right: ast.expr, statement: ast.stmt) -> None:
        begin, end = self._offsets(left)[1], self._offsets(right)[0]
        found = re.search(rb"[<>]=?", self._source[begin:end])
        if found is not None:
            text = _FLIPPED[found[0].decode()]
            self._add_at(
                "bound", (begin + found.start(), begin + found.end()), left, statement, text
            )

    def _call(self, node: ast.Call, statement: ast.stmt) -> None:
        parameters = self._parameters(node.func)
        if parameters is None:
            return
        positional = list(parameters.values())
        for at, (one, other) in enumerate(zip(node.args, node.args[1:], strict=False)):
            if _are_alike(positional[at : at + 2]) and ast.dump(one) != ast.dump(other):
                (begin, middle), (after, end) = self._offsets(one), self._offsets(other)
                between = self._source[middle:after].decode()
                text = self._text(other) + between + self._text(one)
                self._add_at("swap", (begin, end), one, statement, text)
        before = [self._offsets(each)[1] for each in (*node.args, *node.keywords)]
        for at, each in enumerate(node.keywords):
            parameter = parameters.get(each.arg or "")
            is_known = parameter is not None and parameter.default is not parameter.empty
            if (is_known or _is_evolve(node.func)) and len(node.args) + at > 0:
                span = before[len(node.args) + at - 1], self._offsets(each)[1]
                self._add_at("field", span, each, statement, "")

    def _parameters(self, function: ast.expr) -> dict[str, inspect.Parameter] | None:
        """Of a function or class that the module knows by name."""
        found: Any = self._names
        for name in ast.unparse(function).split("."):
            found = found.get(name) if isinstance(found, dict) else getattr(found, name, None)
            if found is None:
                return None
        try:
            return dict(inspect.signature(found).parameters)
        except (TypeError, ValueError):
            return None

    def _text(self, node: ast.AST) -> str:
        begin, end = self._offsets(node)
        return self._source[begin:end].decode()

    def _offsets(self, node: Any) -> tuple[int, int]:
        begin = self._starts[node.lineno - 1] + node.col_offset
        return begin, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _add(self, operator: str, node: Any, statement: ast.stmt, text: str) -> None:
        self._add_at(operator, self._offsets(node), node, statement, text)

    def _add_at(
        self, operator: str, span: tuple[int, int], node: Any, statement: ast.stmt, text: str
    ) -> None:
        number = self._counts[operator] = self._counts.get(operator, 0) + 1
        begin, end = span
        self.found.append(
            Drawn(
                file=self._file,
                function=self._function,
                operator=operator,
                number=number,
                line=node.lineno,
                statement=statement.lineno,
                begin=begin,
                end=end,
                text=text,
            )
        )


def _is_arid(node: ast.stmt) -> bool:
    """Can it not matter? A statement with a body can if one of its statements can."""
    match node:
        case ast.Assert() | ast.Raise() | ast.Pass() | ast.Import() | ast.ImportFrom():
            return True
        case ast.ClassDef():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=function) | ast.Await(value=ast.Call(func=function))):
            return bool(_ARID_CALLS.match(ast.unparse(function)))
        case ast.If(body=body, orelse=orelse):
            return all(map(_is_arid, body + orelse))
    return False


def _may_go(node: ast.stmt, *, is_last: bool) -> bool:
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Delete():
            return True
        case ast.Assign(targets=targets):
            return all(isinstance(each, ast.Attribute | ast.Subscript) for each in targets)
        case ast.Continue() | ast.Break():
            return True
        case ast.Return(value=value):
            return is_last and (value is None or isinstance(value, ast.Constant))
    return False


def _places(root: ast.AST) -> Iterator[ast.AST]:
    """What is in an expression, without f-strings, lambdas' arguments, and operands of flags."""
    yield root
    if isinstance(root, ast.JoinedStr):
        return
    is_of_bits = isinstance(root, ast.BinOp) and isinstance(
        root.op, ast.BitAnd | ast.BitOr | ast.LShift | ast.RShift
    )
    for each in ast.iter_child_nodes(root):
        if not (is_of_bits and isinstance(each, ast.Constant)):
            yield from _places(each)


def _conditions(node: ast.AST, statement: ast.stmt) -> list[ast.expr]:
    """Those that are parts of this expression."""
    match node:
        case ast.IfExp(test=test):
            return [test]
        case ast.comprehension(ifs=tests):
            return tests
        case ast.BoolOp(values=parts):
            return [each for each in parts if _is_condition(each, statement)]
    return []


def _is_condition(operand: ast.expr, statement: ast.stmt) -> bool:
    """Is this part of `and` or `or` not a value?"""
    return isinstance(statement, ast.If | ast.While) or isinstance(
        operand, ast.Compare | ast.UnaryOp
    )


def _are_alike(two: list[inspect.Parameter]) -> bool:
    """May their arguments be mistaken for each other?"""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return (
        len(two) == 2
        and all(each.kind in kinds for each in two)
        and two[0].annotation == two[1].annotation
        and two[0].annotation is not inspect.Parameter.empty
    )


def _is_evolve(function: ast.expr) -> bool:
    return ast.unparse(function) == "attrs.evolve"
