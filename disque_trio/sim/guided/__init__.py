"""Guided seeds: plans that show something new are kept and changed (docs/guided.md).

A run has a signature (`signature`); a search (`search`) keeps the plans that add to all signatures
so far, and makes new plans of them with operators (`operators`). Nothing here reads a clock.
"""
