"""The rooms of the tcp engine: processes, the proxies between them, clients on sockets, traces."""
