"""Evaluates TLA+: values of expressions, and the next states of actions.

Expressions become Python functions, so that a run of the simulator with thousands of steps is
checked in seconds. Values are Python's: strings (also for model values), numbers, frozen sets,
tuples, and `Function` for functions and records.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, Final

import attrs

from tests.spec.parsing import Module, Tree

Values = dict[str, Any]
Action = Callable[[Values, Values, Values], Iterator[Values]]
"""Of a state, the primed variables that are known already, and the bound names: all next states."""
_OPERATORS: Final = {
    "=": "==", "#": "!=", "<": "<", ">": ">", "<=": "<=", ">=": ">=", "+": "+", "-": "-",
    "\\in": "in", "\\notin": "not in", "\\subseteq": "<=",
    "\\cup": "|", "\\cap": "&", "\\": "-", "/\\": "and", "\\/": "or",
}  # fmt: skip


class Function(dict[Any, Any]):
    """A function or record; it is not changed once it is made."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def having(self, keys: tuple[Any, ...], change: Callable[[Any], Any]) -> "Function":
        """EXCEPT."""
        key, rest = keys[0], keys[1:]
        new = Function(self)
        new[key] = self[key].having(rest, change) if rest else change(self[key])
        return new


def _subsets(items: Iterable[Any]) -> frozenset[frozenset[Any]]:
    ordered = sorted(items)
    return frozenset(
        frozenset(chosen)
        for size in range(len(ordered) + 1)
        for chosen in combinations(ordered, size)
    )


def _stable(items: Iterable[Any]) -> list[Any]:
    """In an order that does not change from run to run."""
    return sorted(items, key=_key)


def _key(value: Any) -> str:
    if isinstance(value, frozenset):
        return str([_key(each) for each in _stable(value)])
    if isinstance(value, Function):
        return str(sorted((_key(key), _key(each)) for key, each in value.items()))
    return str(value)


_HELPERS: Final = {
    "Function": Function,
    "_subsets": _subsets,
    "_first": lambda items: next(iter(_stable(items))),
    "Cardinality": len,
    "Len": len,
}


@attrs.define(eq=False)
class Specification:
    """A module with values for its constants."""

    module: Module
    constants: Mapping[str, Any]
    _functions: dict[str, Any] = attrs.field(factory=dict, init=False)
    _actions: dict[str, Action] = attrs.field(factory=dict, init=False)
    _primed: dict[str, bool] = attrs.field(factory=dict, init=False)

    # Expressions. Generated code knows S_ (the state), P_ (the primed variables) and bound names.

    def _code(  # noqa: C901, PLR0911, PLR0912 - a case for each form
        self, tree: Tree, bound: frozenset[str]
    ) -> str:
        match tree:
            case ("value", value):
                return repr(value)
            case ("name", name, arguments):
                return self._named(name, arguments, bound)
            case ("op", "=>", one, other):
                return f"(not {self._code(one, bound)} or {self._code(other, bound)})"
            case ("op", "..", one, other):
                return f"frozenset(range({self._code(one, bound)}, {self._code(other, bound)} + 1))"
            case ("op", "\\in", one, ("functions", domain, values)):
                return self._is_function(one, domain, values, bound)
            case ("op", "\\in" | "\\notin" as op, one, ("prefix", "SUBSET", whole)):
                inside = f"({self._code(one, bound)} <= {self._code(whole, bound)})"
                return inside if op == "\\in" else f"(not {inside})"
            case ("op", op, one, other):
                return f"({self._code(one, bound)} {_OPERATORS[op]} {self._code(other, bound)})"
            case ("prefix", "~", inner):
                return f"(not {self._code(inner, bound)})"
            case ("prefix", "SUBSET", inner):
                return f"_subsets({self._code(inner, bound)})"
            case ("prefix", "UNION", inner):
                return f"frozenset(y_ for x_ in {self._code(inner, bound)} for y_ in x_)"
            case ("prefix", "DOMAIN", inner):
                return f"frozenset({self._code(inner, bound)})"
            case ("all" | "any" as kind, items):
                joint = " and " if kind == "all" else " or "
                return f"({joint.join([self._code(each, bound) for each in items])})"
            case ("if", condition, then, otherwise):
                parts = [self._code(each, bound) for each in (then, condition, otherwise)]
                return f"({parts[0]} if {parts[1]} else {parts[2]})"
            case ("prime", ("name", name, ())):
                return f"P_[{name!r}]"
            case ("apply", function, argument):
                return f"{self._code(function, bound)}[{self._code(argument, bound)}]"
            case ("at",):
                return "at_"
        return self._collection(tree, bound)

    def _collection(  # noqa: C901, PLR0911 - a case for each form
        self, tree: Tree, bound: frozenset[str]
    ) -> str:
        match tree:
            case ("set", items):
                return f"frozenset([{self._codes(items, bound)}])"
            case ("tuple", items):
                return f"({self._codes(items, bound)},)" if items else "()"
            case ("record", fields):
                listed = [f"{name!r}: {self._code(each, bound)}" for name, each in fields]
                return f"Function({{{', '.join(listed)}}})"
            case ("let", named, body):
                inner = bound
                parts = []
                for name, value in named:
                    parts.append(f"({name} := {self._code(value, inner)})")
                    inner |= {name}
                return f"({', '.join(parts)}, {self._code(body, inner)})[-1]"
            case ("except", function, changes):
                code = self._code(function, bound)
                for keys, value in changes:
                    code += f".having(({self._codes(keys, bound)},), "
                    code += f"lambda at_: {self._code(value, bound)})"
                return code
        kind, name, domain, body = tree
        inner_code = self._code(body, bound | {name})
        each = f"for {name} in {self._code(domain, bound)}"
        if kind == "\\A":
            return f"all([{inner_code} {each}])"
        if kind == "\\E":
            return f"any([{inner_code} {each}])"
        if kind == "CHOOSE":
            return f"_first([{name} {each} if {inner_code}])"
        if kind == "filter":
            return f"frozenset([{name} {each} if {inner_code}])"
        if kind == "map":
            return f"frozenset([{inner_code} {each}])"
        assert kind == "function", f"no code for {kind}"
        return f"Function({{{name}: {inner_code} {each}}})"

    def _codes(self, trees: Iterable[Tree], bound: frozenset[str]) -> str:
        return ", ".join([self._code(each, bound) for each in trees])

    def _is_function(self, one: Tree, domain: Tree, values: Tree, bound: frozenset[str]) -> str:
        inside = self._code(("op", "\\in", ("name", "x_", ()), values), bound | {"x_"})
        code = self._code(one, bound)
        keys = self._code(domain, bound)
        return f"(frozenset({code}) == {keys} and all([{inside} for x_ in {code}.values()]))"

    def _named(self, name: str, arguments: tuple[Tree, ...], bound: frozenset[str]) -> str:
        if name in bound:
            return name
        if name in self.module.variables:
            return f"S_[{name!r}]"
        if name in self.constants:
            return f"C_[{name!r}]"
        if name in _HELPERS:
            return f"{name}({self._codes(arguments, bound)})"
        self._function(name)
        words = "".join([f", {self._code(each, bound)}" for each in arguments])
        return f"D_[{name!r}](S_, P_{words})"

    def _function(self, name: str) -> Any:
        if name not in self._functions:
            found = self.module.definitions[name]
            params = "".join([f", {each}" for each in found.params])
            code = self._code(found.body, frozenset(found.params))
            scope = {"C_": self.constants, "D_": self._functions, **_HELPERS}
            self._functions[name] = eval(f"lambda S_, P_{params}: {code}", scope)
        return self._functions[name]

    def value(self, name: str, state: Values, *arguments: Any) -> Any:
        """The value of a definition in a state."""
        return self._function(name)(state, {}, *arguments)

    # Actions.

    def _is_action(self, tree: Any) -> bool:
        """Does it say something of the next state?"""
        if not isinstance(tree, tuple):
            return False
        if tree and tree[0] in ("prime", "unchanged"):
            return True
        if tree and tree[0] == "name" and tree[1] in self.module.definitions:
            name = tree[1]
            if name not in self._primed:
                self._primed[name] = False  # nothing here is recursive
                self._primed[name] = self._is_action(self.module.definitions[name].body)
            if self._primed[name]:
                return True
        return any(self._is_action(each) for each in tree)

    def _compiled(self, tree: Tree, bound: frozenset[str]) -> Callable[..., Any]:
        words = "".join([f", {name}" for name in sorted(bound)])
        scope = {"C_": self.constants, "D_": self._functions, **_HELPERS}
        code: Callable[..., Any] = eval(f"lambda S_, P_{words}: {self._code(tree, bound)}", scope)
        return code

    def _act(  # noqa: PLR0911 - a case for each form
        self, tree: Tree, bound: frozenset[str]
    ) -> Action:
        if not self._is_action(tree):
            return self._guard(tree, bound)
        match tree:
            case ("op", "/\\", one, other):
                return self._sequence((one, other), bound)
            case ("all", items):
                return self._sequence(items, bound)
            case ("op", "\\/", one, other):
                return self._choice((one, other), bound)
            case ("any", items):
                return self._choice(items, bound)
            case ("\\E", name, domain, body):
                return self._some(name, domain, body, bound)
            case ("op", "=", ("prime", ("name", variable, ())), value):
                return self._assignment(variable, value, bound)
            case ("unchanged", what):
                return self._unchanged(what)
            case ("name", name, arguments):
                return self._call(name, arguments, bound)
        raise NotImplementedError(tree[0])

    def _guard(self, tree: Tree, bound: frozenset[str]) -> Action:
        holds, names = self._compiled(tree, bound), sorted(bound)

        def act(state: Values, primed: Values, env: Values) -> Iterator[Values]:
            if holds(state, primed, *[env[name] for name in names]):
                yield primed

        return act

    def _sequence(self, items: tuple[Tree, ...], bound: frozenset[str]) -> Action:
        acts = [self._act(each, bound) for each in items]

        def act(state: Values, primed: Values, env: Values, at: int = 0) -> Iterator[Values]:
            if at == len(acts):
                yield primed
                return
            for after in acts[at](state, primed, env):
                yield from act(state, after, env, at + 1)

        return act

    def _choice(self, items: tuple[Tree, ...], bound: frozenset[str]) -> Action:
        acts = [self._act(each, bound) for each in items]

        def act(state: Values, primed: Values, env: Values) -> Iterator[Values]:
            for each in acts:
                yield from each(state, primed, env)

        return act

    def _some(self, name: str, domain: Tree, body: Tree, bound: frozenset[str]) -> Action:
        members, names = self._compiled(domain, bound), sorted(bound)
        inner = self._act(body, bound | {name})

        def act(state: Values, primed: Values, env: Values) -> Iterator[Values]:
            for value in _stable(members(state, primed, *[env[each] for each in names])):
                yield from inner(state, primed, {**env, name: value})

        return act

    def _assignment(self, variable: str, value: Tree, bound: frozenset[str]) -> Action:
        code, names = self._compiled(value, bound), sorted(bound)

        def act(state: Values, primed: Values, env: Values) -> Iterator[Values]:
            new = code(state, primed, *[env[name] for name in names])
            if variable not in primed:
                yield {**primed, variable: new}
            elif primed[variable] == new:
                yield primed

        return act

    def _unchanged(self, what: Tree) -> Action:
        names = self._variables_in(what)

        def act(state: Values, primed: Values, env: Values) -> Iterator[Values]:
            yield {**{name: state[name] for name in names}, **primed}

        return act

    def _variables_in(self, what: Tree) -> list[str]:
        if what[0] == "tuple":
            return [name for each in what[1] for name in self._variables_in(each)]
        if what[1] in self.module.variables:
            return [what[1]]
        return self._variables_in(self.module.definitions[what[1]].body)

    def _call(self, name: str, arguments: tuple[Tree, ...], bound: frozenset[str]) -> Action:
        params = self.module.definitions[name].params
        values = [self._compiled(each, bound) for each in arguments]
        names = sorted(bound)
        called = self._action(name)

        def act(state: Values, primed: Values, env: Values) -> Iterator[Values]:
            given = [env[each] for each in names]
            inner = {
                param: value(state, primed, *given)
                for param, value in zip(params, values, strict=True)
            }
            yield from called(state, primed, inner)

        return act

    def _action(self, name: str) -> Action:
        if name not in self._actions:
            found = self.module.definitions[name]
            self._actions[name] = self._act(found.body, frozenset(found.params))
        return self._actions[name]

    def steps(self, name: str, state: Values, *arguments: Any) -> Iterator[Values]:
        """The states to which the action leads. An action must say what becomes of each variable:
        KeyError otherwise."""
        params = self.module.definitions[name].params
        env = dict(zip(params, arguments, strict=True))
        for primed in self._action(name)(state, {}, env):
            yield {variable: primed[variable] for variable in self.module.variables}

    def beginnings(self) -> Iterator[Values]:
        """The states that Init describes: each variable is assigned, in any order."""
        body = self.module.definitions["Init"].body
        yield from self._act(_all_primed(body, self.module.variables), frozenset())({}, {}, {})


def _all_primed(tree: Any, variables: tuple[str, ...]) -> Any:
    if not isinstance(tree, tuple):
        return tree
    if tree[:1] == ("name",) and tree[1] in variables:
        return ("prime", tree)
    return tuple(_all_primed(each, variables) for each in tree)


@attrs.define
class Exploration:
    """What a breadth-first search has seen."""

    states: int = 0
    generated: int = 0
    depth: int = 0
    broken: str = ""
    """The invariant that does not hold in the last state of `path`."""
    path: tuple[Values, ...] = ()


def explore(
    specification: Specification, invariants: Iterable[str], most: int = 10_000_000
) -> Exploration:
    """All states that can be reached, or those up to the first in which an invariant is broken."""
    names = specification.module.variables
    found = Exploration()
    came_from: dict[tuple[Any, ...], tuple[Any, ...] | None] = {}
    waiting: deque[tuple[tuple[Any, ...], int]] = deque()

    def see(state: Values, before: tuple[Any, ...] | None, depth: int) -> bool:
        found.generated += 1
        key = tuple([state[name] for name in names])
        if key in came_from:
            return True
        came_from[key] = before
        found.depth = max(found.depth, depth)
        for invariant in invariants:
            if not specification.value(invariant, state):
                found.broken, found.path = invariant, _path(key, came_from, names)
                return False
        waiting.append((key, depth))
        return True

    for state in specification.beginnings():
        see(state, None, 1)
    while waiting and not found.broken and len(came_from) < most:
        key, depth = waiting.popleft()
        state = dict(zip(names, key, strict=True))
        for after in specification.steps("Next", state):
            if not see(after, key, depth + 1):
                break
    found.states = len(came_from)
    return found


def _path(
    last: tuple[Any, ...],
    came_from: Mapping[tuple[Any, ...], tuple[Any, ...] | None],
    names: tuple[str, ...],
) -> tuple[Values, ...]:
    path: list[Values] = []
    key: tuple[Any, ...] | None = last
    while key is not None:
        path.append(dict(zip(names, key, strict=True)))
        key = came_from[key]
    return tuple(reversed(path))
