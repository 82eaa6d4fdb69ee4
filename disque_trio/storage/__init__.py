"""The disk: the journal, its rewrites, its restore at start, spilled bodies, and nodes.conf.

It imports the machine, the wire and the ports. `driver`, `node` and `serving` import it.
"""
