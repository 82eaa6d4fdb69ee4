"""Integrations of the worker library: web frameworks, OpenTelemetry, Sentry, encryption, an outbox.

Source: docs/frameworks.md, docs/worker-codecs.md, docs/worker-outbox.md.

Each module needs the framework that it is named after. No other package imports this one.
"""

__all__ = ["django", "encryption", "flask", "otel", "outbox", "sentry", "starlette"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
