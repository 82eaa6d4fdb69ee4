"""Guided seeds: signatures, operators, and the search."""
