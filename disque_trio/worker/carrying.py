"""Options of a job that differ from its task's, in its headers: for a job that is added again."""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from disque_trio.worker.options import CARRIED, Definition, Options
from disque_trio.worker.runtime import runtime

_MOVING: Final = frozenset(("at", "delay", "lease", "ttl"))
"""Options to which others may give way."""


def carried_by(definition: Definition, changes: Mapping[str, Any]) -> dict[str, int]:
    """Those that these changes have named, and those that gave way to them."""
    if not changes:  # the usual case
        return {}
    if not changes.keys() & _MOVING:
        return {name: changes[name] for name in changes.keys() & CARRIED}
    named = {name: each for name, each in definition.named.items() if name not in changes}
    before, now = Options.of(definition.defaults, named), definition.options
    now = attrs.evolve(now, ttl=now.times(runtime().now())[1])
    return {
        name: getattr(now, name)
        for name in sorted(CARRIED)
        if getattr(now, name) is not None
        if name in changes or getattr(now, name) != getattr(before, name)
    }


def carried(options: Options, headers: Mapping[str, Any]) -> Options:
    """The task's options with those of a job. Raises `ValueError`."""
    given = {name: headers[name] for name in sorted(CARRIED & headers.keys())}
    if not all(isinstance(value, int) for value in given.values()):
        raise ValueError(f"options of the job are no numbers: {given}")
    return attrs.evolve(options, **given)
