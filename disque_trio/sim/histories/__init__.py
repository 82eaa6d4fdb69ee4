"""Judges what clients saw, without knowledge of nodes (docs/histories.md).

`judge` judges a history that `reading` has read. It imports `tracing`, the scenarios and nothing of
engines, so it judges histories of real clusters as well.
"""
