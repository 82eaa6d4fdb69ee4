"""Ties between the worker library and web frameworks, OpenTelemetry, Sentry, encryption, an outbox.

Source: docs/frameworks.md, docs/worker-codecs.md, docs/worker-outbox.md.

Each file needs the framework that it is named after. Nothing else of the package imports this room.
"""

__all__ = ["django", "encryption", "flask", "otel", "outbox", "sentry", "starlette"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
