"""Which modules are compiled: those that every job goes through."""

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parent.parent / "disque_trio"
_WHOLE: Final = ("statemachine", "statemachine/commands", "wire")
"""Folders of which all is compiled but what is `COLD`."""
_SINGLE: Final = tuple(
    f"{folder}/{name}".lstrip("/")
    for folder, names in {
        "": "node",
        "driver": "feeding group_commit input limits output overtaking ready sessions",
        "net": "bus_links clients multiplexing readiness turns",
        "tracing": "client_rows query_rows rows",
        "sim/engines": "events links",
        "sim/engines/heap": "clients driving inspection links meetings"
        " node_clients node_hosts nodes ports",
        "sim/model": "clock disk network recorder vector_clocks",
        "sim/workload": "agents",
        "sim/checkers": "case client_events copy_options counters custody dispatch durability"
        " faults history messages obligations records replies safety timers verdict world",
    }.items()
    for name in names.split()
)
COLD: Final = frozenset(
    f"{folder}/{name}"
    for folder, names in {
        "statemachine": "chores config directives form knobs nodesfile pattern redaction values",
        "statemachine/commands": "clients cluster config greeting info introspection latency"
        " scans server slowlog",
        "wire": "journal salvage words",
    }.items()
    for name in names.split()
)
"""What hardly ever runs; that it stays Python saves a third of the time to compile."""


def compiled() -> list[str]:
    """The paths of the compiled modules in the package, without their ending."""
    whole = [
        f"{folder}/{path.stem}"
        for folder in _WHOLE
        for path in sorted(PACKAGE.joinpath(folder).glob("*.py"))
        if path.stem != "__init__"
    ]
    return [*_SINGLE, *(each for each in whole if each not in COLD)]


def module_name(path: str) -> str:
    """What is imported."""
    return ".".join(["disque_trio", *path.split("/")])


def extended(compiled: Mapping[str, str], others: Mapping[str, str]) -> set[str]:
    """The full names of compiled classes from which others inherit, or classes that inherit from
    them. Modules and their sources."""
    bases: dict[str, set[str]] = {}
    for module, source in compiled.items():
        bases |= _bases(module, ast.parse(source))
    outside = [_bases(module, ast.parse(source)) for module, source in others.items()]
    left = {base for classes in outside for bases_ in classes.values() for base in bases_}
    found: set[str] = set()
    while left := (left & bases.keys()) - found:
        found |= left
        left = {base for each in left for base in bases[each]}
    return found


def _bases(module: str, tree: ast.Module) -> dict[str, set[str]]:
    """The classes of a module, and from which each of them inherits."""
    known = {
        each.asname or each.name: f"{node.module}.{each.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    known |= {node.name: f"{module}.{node.name}" for node in classes}
    return {
        f"{module}.{node.name}": {
            known[base.id] for base in node.bases if isinstance(base, ast.Name) and base.id in known
        }
        for node in classes
    }
