"""A blocking client: connections to a node, TLS, and errors that say what to do.

It imports the wire and `system`. The command line and the pipeline import it.
"""
