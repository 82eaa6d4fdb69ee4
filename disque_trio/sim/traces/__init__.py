"""Traces as files: those of simulated runs, and those of live nodes, merged into one history.

It imports plans and rows. The command line and the pipeline import it.
"""
