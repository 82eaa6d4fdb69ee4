"""Checks rows of apps: pure functions of the events in the app and the reports of nodes."""
