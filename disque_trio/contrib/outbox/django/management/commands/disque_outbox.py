"""`manage.py disque_outbox`: relays the jobs of the outbox."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.module_loading import import_string

from disque_trio.contrib.outbox.django import relay
from disque_trio.terminal.counting import counted
from disque_trio.worker.app import App


class Command(BaseCommand):
    """Runs a relay in this process."""

    help = "Add the jobs of the outbox until SIGTERM or Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--app",
            default="disque_trio.contrib.django.worker:app",
            help="the App, as module:name (default: that of TASKS)",
        )
        parser.add_argument("--database", default="default", help="of DATABASES (default)")
        parser.add_argument("--once", action="store_true", help="add the due jobs, then exit")

    def handle(self, *_: Any, **options: Any) -> None:
        """Run the relay."""
        try:
            app = import_string(options["app"].replace(":", "."))
        except ImportError as error:
            raise CommandError(f"--app {options['app']}: {error}") from error
        if not isinstance(app, App):
            raise CommandError(f"--app {options['app']} is not an App")
        found = relay(app, options["database"])
        if options["once"]:
            self.stdout.write(f"{counted(found.drain(), 'job')} added")
        else:
            found.main()
