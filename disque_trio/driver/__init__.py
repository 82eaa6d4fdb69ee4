"""How a node drives its machine: its inputs, its outbox, and what waits between them.

It imports the machine, the wire, the ports and storage, and knows no sockets. `node` imports it.
"""
