"""The console's pages in a real Chromium, over the DevTools protocol.

The server is a scripted one, except in the test of three real nodes.
"""
