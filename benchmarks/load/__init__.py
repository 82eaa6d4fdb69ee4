"""Our own load generator, for what redis-benchmark cannot do: clients that answer what they get.

A conversation is what one connection says; a talk carries it on; an task is what one process
does, many talks at once; a team is the processes, which begin together. Words are those of Disque,
Redis or beanstalkd.
"""
