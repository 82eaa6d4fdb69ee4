"""What the syntax tree says of records: their fields, their bases, what attrs is asked to make."""

import ast
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

_OPTIONS = {"default", "factory", "init", "kw_only", "repr"}
_EMPTY = {"dict": "{}", "list": "[]"}
_OF_CLASS = {"eq", "frozen", "init", "kw_only", "slots", "weakref_slot"}


class LoweringError(Exception):
    """The source has something that has no lowered form yet."""


@attrs.frozen
class Field:
    """One field, as the class body has it. Source texts."""

    name: str
    annotation: str
    default: str | None = None
    factory: str | None = None
    """What makes its default; `self` stands for the record."""
    init: bool = True
    kw_only: bool = False
    repr: bool = True

    @property
    def alias(self) -> str:
        """What `__init__` calls it."""
        return self.name.lstrip("_")


@attrs.frozen
class Shape:
    """One record class."""

    name: str
    bases: tuple[str, ...]
    """Full names."""
    own: tuple[Field, ...]
    eq: bool
    frozen: bool
    init: bool
    finishes: bool
    """Has it `__attrs_post_init__`?"""


def decorator(node: ast.ClassDef) -> ast.expr | None:
    """`@attrs.define` or `@attrs.frozen` of this class, if it has one."""
    for each in node.decorator_list:
        if ast.unparse(each).split("(", maxsplit=1)[0] in ("attrs.define", "attrs.frozen"):
            if len(node.decorator_list) > 1:
                raise LoweringError(f"line {node.lineno}: {node.name} has two decorators")
            return each
    return None


def shapes(module: str, tree: ast.Module) -> dict[str, Shape]:
    """The records of a module, by their full names."""
    known = _names(module, tree)
    return {
        f"{module}.{node.name}": _shape(node, made, known)
        for node in tree.body
        if isinstance(node, ast.ClassDef) and (made := decorator(node)) is not None
    }


def all_fields(shape: Shape, known: Mapping[str, Shape]) -> list[Field]:
    """Those of its bases, then its own, as attrs orders them."""
    fields: list[Field] = []
    for base in shape.bases:
        if base not in known:
            raise LoweringError(f"{shape.name} inherits from {base}, which is not lowered")
        fields += all_fields(known[base], known)
    own = {field.name for field in shape.own}
    return [field for field in fields if field.name not in own] + list(shape.own)


def field_nodes(node: ast.ClassDef) -> Iterator[tuple[str, ast.AnnAssign]]:
    """The statements that are fields, by name."""
    for each in node.body:
        if not isinstance(each, ast.AnnAssign) or "ClassVar" in ast.unparse(each.annotation):
            continue
        if isinstance(each.target, ast.Name):
            yield each.target.id, each


def default_nodes(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """The methods that make the default of a field, `@name.default`, by its name."""
    return {
        each.value.id: method
        for method in node.body
        if isinstance(method, ast.FunctionDef)
        for each in method.decorator_list
        if isinstance(each, ast.Attribute) and each.attr == "default"
        if isinstance(each.value, ast.Name)
    }


def _names(module: str, tree: ast.Module) -> dict[str, str]:
    """What the names of classes stand for in this module."""
    known = {n.name: f"{module}.{n.name}" for n in tree.body if isinstance(n, ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            known |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return known


def _shape(node: ast.ClassDef, made: ast.expr, known: Mapping[str, str]) -> Shape:
    options = _options(made, _OF_CLASS) if isinstance(made, ast.Call) else {}
    methods = default_nodes(node)
    is_keywords = options.get("kw_only") == "True"
    fields = (_field(name, each, methods.get(name)) for name, each in field_nodes(node))
    return Shape(
        name=node.name,
        bases=tuple(known.get(ast.unparse(base), ast.unparse(base)) for base in node.bases),
        own=tuple(attrs.evolve(f, kw_only=True) if is_keywords else f for f in fields),
        eq=options.get("eq") != "False",
        frozen="frozen" in ast.unparse(made),
        init=options.get("init") != "False",
        finishes="__attrs_post_init__" in [getattr(each, "name", "") for each in node.body],
    )


def _field(name: str, node: ast.AnnAssign, method: ast.FunctionDef | None) -> Field:
    field = Field(name, ast.unparse(_Unquoted().visit(node.annotation)))
    if method is not None:
        field = attrs.evolve(field, factory=f"self.{method.name}()")
    value = node.value
    if value is None:
        return field
    called = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
    if called == "attrs.Factory" and isinstance(value, ast.Call):
        return attrs.evolve(field, factory=_factory(value))
    if called == "attrs.field" and isinstance(value, ast.Call):
        return _described(field, value)
    return attrs.evolve(field, default=ast.unparse(value))


def _described(field: Field, call: ast.Call) -> Field:
    said = _options(call, _OPTIONS)
    if "factory" in said:
        said["factory"] = _EMPTY.get(said["factory"], said["factory"] + "()")
    known: dict[str, Any] = {
        name: text if name in ("default", "factory") else text == "True"
        for name, text in said.items()
    }
    return attrs.evolve(field, **known)


def _factory(call: ast.Call) -> str:
    made = call.args[0]
    takes_self = _options(call, {"takes_self"}).get("takes_self") == "True"
    if isinstance(made, ast.Lambda) and not takes_self:
        return f"({ast.unparse(made.body)})"
    name = ast.unparse(made)
    if isinstance(made, ast.Lambda):
        name = f"({name})"
    return f"{name}(self)" if takes_self else _EMPTY.get(name, f"{name}()")


def _options(call: ast.Call, known: set[str]) -> dict[str, str]:
    said = {each.arg or "**": ast.unparse(each.value) for each in call.keywords}
    if unknown := said.keys() - known:
        raise LoweringError(f"line {call.lineno}: no lowered form of {', '.join(sorted(unknown))}")
    return said


class _Unquoted(ast.NodeTransformer):
    """Annotations without the quotes around names that come later."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str):
            return ast.parse(node.value, mode="eval").body
        return node
