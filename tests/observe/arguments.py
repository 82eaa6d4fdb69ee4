"""A value for each argument that an operation needs, for tests that run all operations.

A new argument of text has the value of `_ANY`, unless it stands in `_TEXTS`.
"""

from typing import Final

from disque_trio.observe.operations.operation import Argument, Operation
from disque_trio.observe.values import Json

GONE: Final = "D-8177b338-LqqjKhrCd8pvOoKUXAoQsvOn-05a1"
"""The id of a job that no node has."""
_ANY: Final = "x"
_TEXTS: Final = {"id": GONE, "address": "127.0.0.1:1", "client": "1"}
"""Values of arguments that are not just any text."""
ONE_OF: Final = {"queues limit": "concurrency", "schedules add": "every"}
"""By operation that needs one of several arguments: that one."""


def sample(argument: Argument) -> str | int | bool:
    """A value that the operation takes."""
    if argument.choices:
        return argument.choices[0]
    match argument.kind:
        case "number":
            return 1 if argument.least is None else int(argument.least)
        case "seconds":
            return 60
        case "flag":
            return True
    return _TEXTS.get(argument.name, _ANY)


def needed(operation: Operation) -> Json:
    """Arguments with which it runs, and no more."""
    return {
        each.name: sample(each)
        for each in operation.arguments
        if each.is_required or each.name == ONE_OF.get(operation.key)
    }
