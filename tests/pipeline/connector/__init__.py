"""Queues as tables and streams."""
