"""The compiled form of the package: the same source, lowered, then compiled by mypyc."""
