"""Sockets: one hub for all of them, clients, bus links, listeners, TLS, and who is admitted.

It imports everything up to `node`. `bus` and `serving` import it.
"""
