"""The apps for workers of a Django project: `disque-trio worker disque_trio.contrib.django.worker`.

`app` is the app of the backend `default`, and `…worker:mails` that of `TASKS["mails"]`. The
environment variable `DJANGO_SETTINGS_MODULE` names the settings.
"""

from typing import Any

import django
from django.apps import apps

from disque_trio.contrib.django import api
from disque_trio.contrib.django.backend import Backend

if not apps.ready:
    django.setup()


def __getattr__(alias: str) -> Any:
    """The app of a backend. Raises `AttributeError` if it is not a backend of disque_trio."""
    if alias.startswith("__"):
        raise AttributeError(alias)
    try:
        backend = api.home.task_backends["default" if alias == "app" else alias]
    except Exception as error:
        raise AttributeError(f"TASKS has no backend {alias}: {error}") from error
    if not isinstance(backend, Backend):
        raise AttributeError(f"TASKS[{alias!r}] is not a backend of disque_trio")
    return backend.app
