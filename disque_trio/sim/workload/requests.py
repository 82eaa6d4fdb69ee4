"""The requests of simulated clients."""

from disque_trio.sim.scenarios.plan import Add, Consumer


def add_words(add: Add) -> list[bytes]:
    """The command."""
    words: list[str | int] = ["ADDJOB", add.queue, add.body.ljust(add.size, "."), add.timeout_ms]
    for option, value in (
        ("REPLICATE", add.replicate),
        ("DELAY", add.delay_s),
        ("RETRY", add.retry_s),
        ("TTL", add.ttl_s),
        ("MAXLEN", add.maxlen),
        ("PRIORITY", add.priority),
    ):
        words += [] if value is None else [option, value]
    words += ["ASYNC"] if add.is_async else []
    return [str(word).encode() for word in words]


def getjob_words(plan: Consumer) -> list[bytes]:
    """The command."""
    words: list[str | int] = ["GETJOB", "TIMEOUT", plan.poll_ms, "COUNT", plan.count]
    words += ["WITHCOUNTERS", "FROM", *plan.queues]
    return [str(word).encode() for word in words]
