"""Byte layouts: the client protocol, the bus, files. No other package encodes or decodes bytes."""
