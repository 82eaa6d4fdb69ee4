"""The user's objects that handlers change: they are restored between runs, compared, and
observed."""

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

_CONTAINERS: Final = (dict, list, set, bytearray)


def _inside(state: Any) -> Any:
    return state if isinstance(state, _CONTAINERS) else vars(state)


@attrs.define(eq=False)
class State:
    """The initial state of one or several objects; several are given as a tuple."""

    objects: tuple[Any, ...]
    _kept: list[Any] = attrs.field(init=False)

    @classmethod
    def of(cls, state: Any) -> "State":
        """The state of an object or a tuple of objects. Raises `TypeError` if one cannot be
        restored."""
        objects = state if isinstance(state, tuple) else () if state is None else (state,)
        for each in objects:
            if not isinstance(each, _CONTAINERS) and not hasattr(each, "__dict__"):
                raise TypeError(
                    f"state: a {type(each).__name__} cannot be restored between runs: give a "
                    "dict, a list, a set, or an object that has a __dict__"
                )
        return cls(objects)

    def __attrs_post_init__(self) -> None:
        self._kept = [copy.deepcopy(_inside(each)) for each in self.objects]

    def restore(self) -> None:
        """Restore the initial state."""
        for each, kept in zip(self.objects, self._kept, strict=True):
            inside, fresh = _inside(each), copy.deepcopy(kept)
            if isinstance(inside, list | bytearray):
                inside[:] = fresh
            else:
                inside.clear()
                inside.update(fresh)

    def snapshot(self) -> Any:
        """A copy of the current state."""
        return {_name(each): copy.deepcopy(_inside(each)) for each in self.objects}


def _name(each: Any) -> str:
    return "state" if isinstance(each, _CONTAINERS) else type(each).__name__


def differences(found: Any, wanted: Any, path: str = "") -> Iterator[str]:
    """The differences between two values, as text."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in [*wanted, *(each for each in found if each not in wanted)]:
            inner = f"{path}.{key}" if path and isinstance(key, str) else f"{path}[{key!r}]"
            inner = key if not path and isinstance(key, str) else inner
            if key not in found:
                yield f"{inner} is missing, and was {wanted[key]!r}"
            elif key not in wanted:
                yield f"{inner} is {found[key]!r}, and was not there"
            else:
                yield from differences(found[key], wanted[key], inner)
    elif found != wanted:
        yield f"{path or 'the snapshot'} is {found!r}, not {wanted!r}"


Effect = Callable[[str], None]


class Watching:
    """Reports calls of the objects' public methods while entered, except calls from other such
    methods."""

    def __init__(self, state: State, report: Effect) -> None:
        self._state = state
        self._report = report
        self._classes: list[tuple[Any, type]] = []
        self._depth = 0

    def __enter__(self) -> None:
        for each in self._state.objects:
            kind = type(each)
            if isinstance(each, _CONTAINERS):
                continue
            names = [
                name
                for name in dir(kind)
                if not name.startswith("_") and callable(getattr(kind, name, None))
            ]
            body: dict[str, Any] = {name: self._wrapped(getattr(kind, name)) for name in names}
            body["__module__"], body["__qualname__"] = kind.__module__, kind.__qualname__
            try:
                each.__class__ = type(kind.__name__, (kind,), body)
            except TypeError:  # its class cannot be replaced
                continue
            self._classes.append((each, kind))

    def __exit__(self, *_: object) -> None:
        for each, kind in self._classes:
            each.__class__ = kind
        self._classes.clear()

    def _wrapped(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def called(self_: Any, *args: Any, **kwargs: Any) -> Any:
            arguments = [repr(each) for each in args] + [f"{k}={v!r}" for k, v in kwargs.items()]
            if not self._depth:
                self._report(f"{_name(self_)}.{method.__name__}({', '.join(arguments)})")
            self._depth += 1
            try:
                return method(self_, *args, **kwargs)
            finally:
                self._depth -= 1

        called.__name__ = method.__name__
        return called
