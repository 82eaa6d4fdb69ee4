"""Ties between the worker library and web frameworks, and OpenTelemetry (docs/frameworks.md).

Each file needs the framework that it is named after. Nothing else of the package imports this room.
"""
