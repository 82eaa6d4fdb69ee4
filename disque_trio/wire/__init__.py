"""Byte layouts: the client protocol, the bus, files. Nowhere else is a byte put in its place."""
