"""A worker's engine, with a node at the other end of each connection that the test plays."""

from disque_trio.statemachine.base import Failure, Reply
from disque_trio.worker.engine.engine import Engine
from disque_trio.worker.engine.records import (
    MILLI,
    Cancel,
    Drop,
    Micros,
    Outcome,
    Queue,
    Reason,
    Send,
    Settings,
    Start,
)

ONE = b"D-11111111-222222222222222222222222-05a1"
TWO = b"D-11111111-333333333333333333333333-05a1"
ONCE = b"D-11111111-444444444444444444444444-05a0"
TOKEN = b"aaaaaaaa0123456789ab"
FEATURES = b"withmeta,tokens,release,tied,unblock,nack-delay,dead-letters"
NODES = ("n1", "n2", "n3")


def lease(
    id: bytes,
    queue: bytes = b"q",
    ms: int = 9_000,
    *,
    nacks: int = 0,
    again: int = 0,
    was_unbegun: bool = False,
) -> Reply:
    """A job as GETJOB WITHMETA shows it."""
    told: list[Reply] = [b"nacks", nacks, b"additional-deliveries", again, b"lease-ms", ms]
    told += [b"token", TOKEN]
    if was_unbegun:
        told += [b"unbegun", 1]
    return [queue, id, b"body", *told]


def plain(id: bytes, queue: bytes = b"q") -> Reply:
    """A job as GETJOB WITHCOUNTERS of the original shows it."""
    return [queue, id, b"body", b"nacks", 0, b"additional-deliveries", 0]


class Talk:
    """A conversation with an engine. Time is in milliseconds."""

    def __init__(self, *queues: Queue, features: bytes = FEATURES, **settings: object) -> None:
        self.now: Micros = 1_000 * MILLI
        self.features = features
        self.asked: dict[int, list[Send]] = {}
        """By connection: requests without a reply."""
        self.said: list[Send] = []
        self.starts: list[bytes] = []
        self.runs: list[Start] = []
        self.cancels: list[tuple[bytes, Reason]] = []
        self.drops: list[tuple[bytes, Reason]] = []
        self.closes: list[int] = []
        known = Settings(nodes=NODES, queues=queues or (Queue(name=b"q"),), **settings)  # type: ignore[arg-type]
        self.engine = Engine(known, self.now)
        self.engine.tick(self.now)
        self.listen()

    def listen(self) -> None:
        """Take the effects."""
        out = self.engine.take()
        for send in out.sends:
            self.asked.setdefault(send.link, []).append(send)
            self.said.append(send)
        self.cancels += [(each.id, each.why) for each in out.cancels if isinstance(each, Cancel)]
        self.drops += [(each.id, each.why) for each in out.drops if isinstance(each, Drop)]
        self.runs += out.starts
        self.starts += [each.id for each in out.starts if isinstance(each, Start)]
        for link in out.closes:
            self.closes.append(link)
            self.asked.pop(link, None)

    def last(self, word: bytes) -> Send:
        """The last request with this command."""
        return next(send for send in reversed(self.said) if send.words[0] == word)

    def count(self, word: bytes) -> int:
        """How many requests with this command there were."""
        return sum(send.words[0] == word for send in self.said)

    def waits(self, word: bytes) -> Send | None:
        """The first request with this command that has no reply."""
        sends = [each for link in self.asked.values() for each in link if each.words[0] == word]
        return sends[0] if sends else None

    # What nodes do.

    def answer(self, word: bytes, reply: Reply) -> Send:
        """Answer the first request with this command, and greetings before it."""
        for link, sends in list(self.asked.items()):
            while sends and any(each.words[0] == word for each in sends):
                send = sends.pop(0)
                is_it = send.words[0] == word
                self.engine.answered(self.now, link, reply if is_it else self._greeting(send))
                self.listen()
                if is_it:
                    return send
        raise AssertionError(f"nobody waits for {word!r}: {self.asked}")

    def greet(self) -> None:
        """Answer all greetings."""
        for link, sends in list(self.asked.items()):
            while sends and sends[0].words[0] in (b"INFO", b"CLIENT"):
                send = sends.pop(0)
                self.engine.answered(self.now, link, self._greeting(send))
                self.listen()

    def _greeting(self, send: Send) -> Reply:
        if send.words == (b"CLIENT", b"ID"):
            return 7
        return b"# Server\r\ndisque_version:1\r\nfeatures:%b\r\n" % self.features

    def deliver(self, *jobs: Reply) -> Send:
        """Answer GETJOB."""
        self.greet()
        return self.answer(b"GETJOB", list(jobs))

    def refuse(self, word: bytes, text: bytes) -> Send:
        """Answer with an error."""
        return self.answer(word, Failure(text))

    def lose(self, node: str) -> None:
        """All connections of a node end."""
        ends = [send.link for send in self.said if send.node == node]
        for link in dict.fromkeys(ends):
            if link not in self.closes:
                self.asked.pop(link, None)
                self.engine.lost(self.now, link)
                self.listen()

    # What happens here.

    def finish(self, id: bytes, outcome: Outcome | None) -> None:
        """The handler ends."""
        self.engine.finished(self.now, id, outcome)
        self.listen()

    def wait(self, ms: int) -> None:
        """Time passes; the engine is woken whenever it wants."""
        until = self.now + ms * MILLI
        for _ in range(10_000):
            due = self.engine.deadline()
            if due > until:
                break
            self.now = max(self.now, due)
            self.engine.tick(self.now)
            self.listen()
        else:
            raise AssertionError("the engine does not let time pass")
        self.now = until

    def sleep(self, ms: int) -> None:
        """The process is stopped, and then continues."""
        self.now += ms * MILLI

    def stop(self) -> None:
        """The order to stop."""
        self.engine.stop(self.now)
        self.listen()
