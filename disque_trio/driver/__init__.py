"""The driver of a node's machine: its inputs, its outbox, and what waits between them.

It imports the machine, the wire, the ports and storage, but uses no sockets. `node` imports it.
"""
