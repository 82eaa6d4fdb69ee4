"""Ties to web frameworks and to OpenTelemetry, each by the framework itself."""
