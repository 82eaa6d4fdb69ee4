"""Of `disque_trio.testing`."""
