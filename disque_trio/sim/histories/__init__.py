"""Judges what clients observed, without knowledge of nodes (docs/histories.md).

`judge` judges a history that `reading` has read. It imports `tracing` and the scenarios, but no
engine, so it judges histories of real clusters as well.
"""
