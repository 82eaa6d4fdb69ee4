"""Disque, the distributed in-memory at-least-once job queue, on Trio."""

__version__ = "0.1.0"
