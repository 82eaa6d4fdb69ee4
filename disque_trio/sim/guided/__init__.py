"""Guided search: plans with new behaviour are kept and varied (docs/guided.md).

A run has a signature (`signature`). A search (`search`) keeps the plans that add to all signatures
so far, and derives new plans from them with operators (`operators`). Nothing here reads a clock.
"""
