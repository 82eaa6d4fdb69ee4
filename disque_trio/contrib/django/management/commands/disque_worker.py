"""`manage.py disque_worker`: runs the tasks of a backend, with the options of the worker."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from disque_trio.cli.worker import main


class Command(BaseCommand):
    """Starts `disque-trio worker` in this process."""

    help = "Run the jobs of a backend of TASKS until SIGTERM or Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options; others are options of `disque-trio worker`."""
        parser.add_argument("--backend", default="default", help="which of TASKS (default)")
        parser.add_argument(
            "options", nargs="*", help="after `--`: options of `disque-trio worker`"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Run the worker, and exit with its status."""
        backend = options["backend"]
        name = "app" if backend == "default" else backend
        sys.exit(main([f"disque_trio.contrib.django.worker:{name}", *options["options"]]))
