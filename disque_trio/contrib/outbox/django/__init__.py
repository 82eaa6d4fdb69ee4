"""The outbox for Django: an application with a model, for `INSTALLED_APPS`.

`add` writes rows in the current transaction, and `manage.py disque_outbox` relays them. Source:
docs/worker-outbox.md, "Django".
"""

from importlib import import_module
from typing import Any

from disque_trio.contrib.outbox.relay import Relay
from disque_trio.worker.app import App
from disque_trio.worker.enqueue import Call

__all__ = ["add", "relay"]


def add(*calls: Call[Any], using: str = "default") -> list[str]:
    """Add these jobs when the current transaction of the database `using` is committed, or
    immediately without a transaction. Returns their keys. Raises as `Task.enqueue` for invalid
    calls."""
    storing = import_module("disque_trio.contrib.outbox.django.storing")  # it needs the models
    found: list[str] = storing.add(calls, using)
    return found


def relay(app: App[Any], using: str = "default", **options: Any) -> Relay:
    """The relay for this database; `options` are those of `Relay`."""
    storing = import_module("disque_trio.contrib.outbox.django.storing")
    return Relay(app, storing.Storage(using), **options)
