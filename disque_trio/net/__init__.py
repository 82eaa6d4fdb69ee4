"""Sockets: one event loop for all of them, clients, bus links, listeners, TLS, and admission.

This package imports everything up to `node`. `bus` and `serving` import it.
"""
