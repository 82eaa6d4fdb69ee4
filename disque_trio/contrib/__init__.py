"""Ties between the worker library and web frameworks, and OpenTelemetry (docs/frameworks.md).

Each file needs the framework that it is named after. Nothing else of the package imports this room.
"""

__all__ = ["django", "flask", "otel", "starlette"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
