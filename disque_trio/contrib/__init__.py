"""Ties between the worker library and web frameworks, OpenTelemetry, Sentry, encryption.

Source: docs/frameworks.md, docs/worker-codecs.md.

Each file needs the framework that it is named after. Nothing else of the package imports this room.
"""

__all__ = ["django", "encryption", "flask", "otel", "sentry", "starlette"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
