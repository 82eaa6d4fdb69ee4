"""Plans as JSON files: one item per line, without defaults, and read strictly.

Every plan that `simulate` can run can be written and run again elsewhere.
"""

import json
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import attrs

from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.scenarios.versions import VERSIONS
from disque_trio.statemachine.knobs import KNOBS

VERSION: Final = 1
_VERSION_KEY: Final = "plan"
_NOTE_KEY: Final = "note"
_RENAMED: Final = {"deeds": "actions"}
"""Keys in plans of earlier releases, and their present names."""
_NAMES: Final = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
_LEAST: Final = {knob.name: knob.least for knob in KNOBS}


class PlanError(Exception):
    """The file is no plan; the text has the place and the reason."""


def dump(plan: Plan, note: str = "") -> str:
    """Return the plan as JSON. `note` is for people."""
    document = {_VERSION_KEY: VERSION, **({_NOTE_KEY: note} if note else {}), **plain(plan)}
    parts = [f"{json.dumps(name)}: {_spread(value)}" for name, value in document.items()]
    return "{\n  " + ",\n  ".join(parts) + "\n}\n"


def plain(record: Any) -> dict[str, Any]:
    """Return a record as JSON values, without defaults."""
    facts: dict[str, Any] = {}
    for field in attrs.fields(type(record)):
        value = getattr(record, field.name)
        if field.default is attrs.NOTHING or value != field.default:
            facts[field.name] = _plain(value)
    return facts


def _plain(value: Any) -> Any:
    if attrs.has(type(value)):
        return plain(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _spread(value: Any) -> str:
    """Return lists with one item per line, so that plans can be compared and edited by hand."""
    if not isinstance(value, list) or not any(isinstance(each, dict) for each in value):
        return json.dumps(value)
    return "[\n    " + ",\n    ".join(json.dumps(each) for each in value) + "\n  ]"


def parse(text: str, name: str = "plan") -> Plan:
    """Return the plan in a text. Raise `PlanError`, with `name` in front."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise PlanError(f"{name}: not JSON: {error}") from None
    if not isinstance(document, dict) or _VERSION_KEY not in document:
        raise PlanError(f"{name}: no plan: a plan is an object that starts with '{_VERSION_KEY}'")
    if document.pop(_VERSION_KEY) != VERSION:
        raise PlanError(f"{name}: a plan of another version than {VERSION}")
    document.pop(_NOTE_KEY, None)
    plan: Plan = _record(Plan, document, name)
    _check(plan, name)
    return plan


def load(path: str | Path) -> Plan:
    """Return the plan in a file. Raise `PlanError`, or OSError if there is no file."""
    try:
        text = Path(path).read_text("utf-8")
    except UnicodeDecodeError:
        raise PlanError(f"{path}: not UTF-8") from None
    return parse(text, str(path))


def _record(kind: type, value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise PlanError(f"{place}: {json.dumps(value)} is not an object")
    types = get_type_hints(kind)
    known = {field.name: field for field in attrs.fields(kind)}
    value = {name if name in known else _RENAMED.get(name, name): value[name] for name in value}
    for name in value:
        if name not in known:
            raise PlanError(f"{place}: unknown key '{name}'; known are {', '.join(known)}")
    for name, field in known.items():
        if field.default is attrs.NOTHING and name not in value:
            raise PlanError(f"{place}: {name} is missing")
    return kind(
        **{name: _value(types[name], each, f"{place}.{name}") for name, each in value.items()}
    )


def _value(kind: Any, value: Any, place: str) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        return None if value is None else _value(_some(parts), value, place)
    if origin is tuple:
        return _tuple(parts, value, place)
    if attrs.has(kind):
        return _record(kind, value, place)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise PlanError(f"{place}: {json.dumps(value)} is not {_NAMES[kind]}")
    return value


def _some(parts: tuple[Any, ...]) -> Any:
    return next(part for part in parts if part is not NoneType)


def _tuple(parts: tuple[Any, ...], value: Any, place: str) -> tuple[Any, ...]:
    is_endless = parts[-1] is Ellipsis
    if not isinstance(value, list) or not (is_endless or len(value) == len(parts)):
        size = "a list" if is_endless else f"a list of {len(parts)}"
        raise PlanError(f"{place}: {json.dumps(value)} is not {size}")
    kinds = [parts[0]] * len(value) if is_endless else list(parts)
    return tuple(
        _value(kind, each, f"{place}[{number}]")
        for number, (kind, each) in enumerate(zip(kinds, value, strict=True))
    )


def _check(plan: Plan, name: str) -> None:
    """Check dependences between several values, which would otherwise show only during a run."""
    if plan.nodes < 1:
        raise PlanError(f"{name}.nodes: {plan.nodes} is no number of nodes")
    for constant, number in plan.knobs:
        if number < _LEAST.get(constant, number + 1):
            known = f"at least {_LEAST[constant]}" if constant in _LEAST else "no constant"
            raise PlanError(f"{name}.knobs: {constant} = {number}: it is {known}")
    _check_versions(plan, name)
    for key, places in (
        ("adds", [add.node for add in plan.adds]),
        ("consumers", [consumer.node for consumer in plan.consumers]),
        ("limits", [limit.node for limit in plan.limits]),
    ):
        for number, node in enumerate(places):
            if not 1 <= node <= plan.nodes:
                place = f"{name}.{key}[{number}].node"
                raise PlanError(f"{place}: there is no node {node} among {plan.nodes}")
    for number, fault in enumerate(plan.faults):
        if fault.at >= plan.chaos:
            raise PlanError(
                f"{name}.faults[{number}].at: this {fault.kind} never happens: it begins at "
                f"{fault.at} us, and the chaos ends at {plan.chaos} us"
            )


def _check_versions(plan: Plan, name: str) -> None:
    for number, lives in enumerate(plan.versions):
        for each in lives:
            if each not in VERSIONS:
                known = ", ".join(VERSIONS)
                raise PlanError(f"{name}.versions[{number}]: no version {each}; known are {known}")
