"""The modules of Django's tasks, from Django itself or from `django-tasks`."""

import logging
from importlib import import_module, util
from typing import Any, Final

_HAS_TASKS = util.find_spec("django.tasks") is not None
_HOME = "django.tasks" if _HAS_TASKS else "django_tasks"
LOGGER: Final = logging.getLogger(_HOME)
"""The logger on which Django logs outcomes of tasks: a failure with its traceback."""
try:
    home: Any = import_module(_HOME)
except ImportError as error:
    raise ImportError(
        'Django before 6.0 has no tasks: pip install "disque-trio[django]"', name=error.name
    ) from error
base: Any = import_module(f"{_HOME}.base")
exceptions: Any = import_module(f"{_HOME}.exceptions")
backends: Any = import_module(f"{_HOME}.backends.base")
signals: Any = import_module(f"{_HOME}.signals")
