"""The tcp engine: processes of the server, proxies between them, and clients on sockets.

It imports the heap engine. It starts the server as a process and does not import it.
"""
