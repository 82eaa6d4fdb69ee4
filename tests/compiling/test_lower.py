"""Lowered records behave as those that attrs makes, and every statement stays on its line."""

import ast
import inspect
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import attrs
import pytest

from compiling import plain
from compiling.lower import PLAIN, lower_all
from compiling.modules import PACKAGE, compiled, extended, module_name
from compiling.shapes import LoweringError

SOURCE = '''"""Records of every kind."""

import attrs

FEW = 3


@attrs.define(eq=False, weakref_slot=False)
class Timed:
    """It has a deadline."""

    due: int = attrs.field(default=0, init=False)
    slot: "Other | None" = attrs.field(default=None, init=False, repr=False)


@attrs.define(eq=False)
class Job(Timed):
    """It has a deadline.

    And more.
    """

    id: bytes
    holders: tuple[bytes, ...]
    """Who has it."""
    state: int = FEW  # the first one
    reports: dict[bytes, int] = attrs.Factory(dict)
    names: list[int] = attrs.field(
        factory=list,
        repr=False,
    )
    least: int = attrs.field(init=False)
    twice: int = attrs.Factory(lambda: 2 * FEW)
    whole: tuple[int, bytes] = attrs.Factory(_whole, takes_self=True)
    _young: list[int] = attrs.Factory(list)

    @least.default
    def _at_least(self) -> int:
        return self.state + 1


def _whole(job: Job) -> tuple[int, bytes]:
    return job.state, job.id


@attrs.define
class Other:
    """Compared by its values."""

    text: bytes
    more: int = 0


@attrs.define
class Further(Other):
    """It adds to them."""

    most: int = attrs.field(default=5, kw_only=True)


@attrs.define
class Same(Other):
    """It adds nothing."""


@attrs.frozen
class Term:
    """It can be a key."""

    words: tuple[str, ...]
    is_last: bool = False

    def last(self) -> "Term":
        """The same, but last."""
        return attrs.evolve(self, is_last=True)


@attrs.define(eq=False, init=False)
class Own:
    """It has its own `__init__`."""

    values: list[int]

    def __init__(self) -> None:
        self.values = []


@attrs.define
class Finished:
    """It has something to do once it is there."""

    size: int

    def __attrs_post_init__(self) -> None:
        self.size += 1
'''.replace("_whole, takes_self", "lambda job: (job.state, job.id), takes_self")


def run(source: str, name: str) -> ModuleType:
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, name, "exec"), vars(module))
    return module


@pytest.fixture
def pure() -> Iterator[ModuleType]:
    yield run(SOURCE, "pure_records")
    del sys.modules["pure_records"]


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.setitem(sys.modules, PLAIN, plain)
    yield run(lower_all({"records": SOURCE})["records"], "lowered_records")
    del sys.modules["lowered_records"]


NAMES = ["Timed", "Job", "Other", "Further", "Same", "Term", "Own", "Finished"]
MADE: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Timed", (), {}),
    ("Job", (b"D-1", (b"a", b"b")), {}),
    ("Job", (b"D-1", ()), {"state": 7, "reports": {b"a": 1}, "young": [4], "twice": 0}),
    ("Other", (b"x",), {"more": 2}),
    ("Further", (b"x", 1), {"most": 6}),
    ("Same", (b"x",), {}),
    ("Term", (("a",),), {}),
    ("Own", (), {}),
    ("Finished", (1,), {}),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_lowered_record_is_made_from_the_same_arguments(
    pure: ModuleType, lowered: ModuleType, name: str
) -> None:
    def arguments(module: ModuleType) -> list[tuple[str, object, bool]]:
        given = inspect.signature(vars(module)[name]).parameters.values()
        return [(each.name, each.kind, each.default is each.empty) for each in given]

    assert not attrs.has(vars(lowered)[name]) or "_plain" in vars(lowered)
    assert arguments(lowered) == arguments(pure)


@pytest.mark.parametrize(("name", "args", "named"), MADE)
def test_a_lowered_record_has_the_same_fields_and_the_same_look(
    pure: ModuleType, lowered: ModuleType, name: str, args: Any, named: Any
) -> None:
    expected = vars(pure)[name](*args, **named)
    made = vars(lowered)[name](*args, **named)

    fields = [field.name for field in attrs.fields(type(expected))]
    assert [field.name for field in attrs.fields(type(made))] == fields
    assert [field.default for field in attrs.fields(type(made))] == [
        attrs.NOTHING if callable(getattr(field.default, "factory", None)) else field.default
        for field in attrs.fields(type(expected))
    ]
    assert [getattr(made, each) for each in fields] == [getattr(expected, each) for each in fields]
    assert repr(made) == repr(expected)
    assert type(made).__match_args__ == type(expected).__match_args__
    assert type(made).__doc__ == type(expected).__doc__


def test_a_lowered_record_has_values_of_its_own(lowered: ModuleType) -> None:
    first, second = lowered.Job(b"1", ()), lowered.Job(b"2", ())

    first.reports[b"a"] = 1

    assert second.reports == {}


@pytest.mark.parametrize("form", ["pure", "lowered"])
def test_records_are_equal_as_attrs_has_it(form: str, request: pytest.FixtureRequest) -> None:
    made = request.getfixturevalue(form)

    assert made.Other(b"x") == made.Other(b"x", 0)
    assert made.Other(b"x") != made.Other(b"y")
    assert made.Other(b"x") != made.Same(b"x")
    assert made.Further(b"x", most=1) != made.Further(b"x", most=2)
    assert made.Job(b"x", ()) != made.Job(b"x", ())
    assert made.Term(("a",)).last() == made.Term(("a",), True)
    assert attrs.evolve(made.Further(b"x", most=1), more=3) == made.Further(b"x", 3, most=1)
    assert attrs.asdict(made.Other(b"x")) == {"text": b"x", "more": 0}


@pytest.mark.parametrize("form", ["pure", "lowered"])
def test_records_are_hashed_as_attrs_has_it(form: str, request: pytest.FixtureRequest) -> None:
    made = request.getfixturevalue(form)
    job = made.Job(b"x", ())

    assert {made.Term(("a",)): 1}[made.Term(("a",))] == 1
    assert {job: 1}[job] == 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(made.Other(b"x"))


def test_attrs_makes_nothing_in_a_lowered_module(lowered: ModuleType) -> None:
    assert "attrs" not in vars(lowered)


def statements(source: str) -> list[tuple[str, int]]:
    """Functions and what stands in them, with their lines; without what lowering adds."""
    return [
        (ast.unparse(each), each.lineno)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name != "__init__"
        for each in node.body
        if "attrs.evolve" not in ast.unparse(each) and "_plain." not in ast.unparse(each)
    ]


def test_every_statement_of_the_package_stays_on_its_line() -> None:
    sources = {module_name(path): (PACKAGE / f"{path}.py").read_text() for path in compiled()}
    lowered = lower_all(sources)

    for module, source in sources.items():
        assert statements(lowered[module]) == statements(source), module
        assert lowered[module].count("\n") == source.count("\n"), module
        assert "attrs.define" not in lowered[module], module


def test_a_base_of_another_module_is_found() -> None:
    sources = {
        "a": '"""A."""\n\nimport attrs\n\n\n@attrs.define\nclass A:\n    """A."""\n\n    x: int\n',
        "b": '"""B."""\n\nimport attrs\n\nfrom a import A as Base\n\n\n'
        '@attrs.define\nclass B(Base):\n    """B."""\n\n    y: int = 0\n',
    }

    assert "def __init__(self, x: 'int', y: 'int' = 0)" in lower_all(sources)["b"]
    with pytest.raises(LoweringError, match=r"B inherits from a\.A"):
        lower_all({"b": sources["b"]})


def test_a_class_that_others_extend_may_have_subclasses_that_are_not_compiled() -> None:
    source = '"""M."""\n\n\nclass Machine:\n    """It runs."""\n'
    other = "from m import Machine as Base\n\nclass Traced(Base): ...\n"

    assert extended({"m": source}, {"other": other}) == {"m.Machine"}
    lines = lower_all({"m": source}, {"m.Machine"})["m"].splitlines()
    assert lines[2] == "@_plain.mypyc_attr(allow_interpreted_subclasses=True)"
    assert lines[3:] == source.splitlines()[3:]


def test_so_may_the_classes_from_which_such_a_class_inherits() -> None:
    sources = {
        "a": "class A: ...\n\n\nclass Other: ...\n",
        "b": "from a import A, Other\n\n\nclass B(A): ...\n\n\nclass More(Other): ...\n",
    }

    assert extended(sources, {"c": "from b import B\n\nclass C(B): ...\n"}) == {"a.A", "b.B"}


def test_a_record_that_others_extend_may_have_them_too() -> None:
    source = 'import attrs\n\n\n@attrs.define\nclass A:\n    """A."""\n\n    x: int\n'

    lines = lower_all({"a": source}, {"a.A"})["a"].splitlines()
    assert lines[2] == "@_plain.mypyc_attr(allow_interpreted_subclasses=True)"
    assert lines[3] == "class A(_plain.Record):"


@pytest.mark.parametrize("before", ["x = 1\n", "\n\n@final\n"])
def test_where_there_is_no_room_to_say_so_that_is_refused(before: str) -> None:
    with pytest.raises(LoweringError, match="no room"):
        lower_all({"a": f'{before}class A:\n    """A."""\n'}, {"a.A"})


@pytest.mark.parametrize(
    ("decorator", "field", "message"),
    [
        ("@attrs.define(order=True)", "x: int", "no lowered form of order"),
        ("@attrs.define", "x: int = attrs.field(converter=int)", "no lowered form of converter"),
        ("@final\n@attrs.define", "x: int", "two decorators"),
    ],
)
def test_what_has_no_lowered_form_is_refused(decorator: str, field: str, message: str) -> None:
    source = f'import attrs\n\n{decorator}\nclass A:\n    """A."""\n\n    {field}\n'

    with pytest.raises(LoweringError, match=message):
        lower_all({"a": source})


def test_a_record_without_a_docstring_is_refused() -> None:
    with pytest.raises(LoweringError, match="A has no docstring"):
        lower_all({"a": "import attrs\n\n@attrs.define\nclass A:\n    x: int\n"})
