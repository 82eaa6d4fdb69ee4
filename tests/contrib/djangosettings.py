"""Django, configured for tests. Import `pytest.importorskip("django")` before."""

import django
from django.conf import settings

from disque_trio.contrib.django import api
from disque_trio.worker import Fixed

if not settings.configured:
    settings.configure(
        TASKS={
            "default": {
                "BACKEND": "disque_trio.contrib.django.Backend",
                "QUEUES": ["default", "mail"],
                "OPTIONS": {"lease": 30},
            },
            "outbox": {
                "BACKEND": "disque_trio.contrib.django.Backend",
                "OPTIONS": {"outbox": "default"},
            },
            "kept": {
                "BACKEND": "disque_trio.contrib.django.Backend",
                "QUEUES": ["default", "mail"],
                "OPTIONS": {"lease": 30, "retry": Fixed([600]), "result_ttl": 60},
            },
            "kept-outbox": {
                "BACKEND": "disque_trio.contrib.django.Backend",
                "OPTIONS": {"outbox": "default", "result_ttl": 60},
            },
            "any": {"BACKEND": "disque_trio.contrib.django.Backend", "QUEUES": []},
            "here": {"BACKEND": f"{api.home.__name__}.backends.immediate.ImmediateBackend"},
        },
        INSTALLED_APPS=["disque_trio.contrib.django", "disque_trio.contrib.outbox.django"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        USE_TZ=True,
        SECRET_KEY="for tests",
    )
    django.setup()

from disque_trio.contrib.django import worker  # it reads the settings

__all__ = ["worker"]
