"""The configuration of the application."""

from django.apps import AppConfig


class OutboxConfig(AppConfig):
    """Loaded by Django if the package is in `INSTALLED_APPS`."""

    name = "disque_trio.contrib.outbox.django"
    label = "disque_outbox"
    verbose_name = "Disque outbox"
    default_auto_field = "django.db.models.BigAutoField"
