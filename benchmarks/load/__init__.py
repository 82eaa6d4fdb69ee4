"""Our own load generator, because requests of redis-benchmark cannot depend on replies.

A client is one connection; a conversation is the requests that it sends; a task is the work of one
process with many clients; the processes begin together. A dialect has the requests of one kind of
server.
"""
