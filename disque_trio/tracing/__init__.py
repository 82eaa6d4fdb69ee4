"""Traces: rows of events. The simulator and live nodes write the same rows.

This package imports only the machine. The simulator, the server and the pipeline import it.
"""
