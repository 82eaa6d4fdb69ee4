"""One request to the nodes for all browsers with the same question, and none without browsers."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import attrs
import trio

from disque_trio.client.errors import DisqueError
from disque_trio.observe.observer import Answer, Observer
from disque_trio.observe.values import Json, encoded
from disque_trio.web.messages import Request, Response
from disque_trio.web.pieces import encoded_in_turns
from disque_trio.worker.operating.plans import MistakeError

LINGER_S: Final = 10.0
"""How long the connections to nodes stay open after the last browser has left."""
REST: Final = 4
"""The minimum pause after a question, as a multiple of the time that its answer took."""
_LOOK_S: Final = 0.5
_AFTER_BUG_S: Final = 5.0
SOCKETS: Final = 32
"""The maximum number of browsers at the same time."""

Deliver = Callable[["View"], None]


class Steered(Protocol):
    """The interface of a sandbox (`web.sandbox`), which no node has."""

    def state(self) -> Json:
        """Return its state."""

    def do(self, args: Json) -> list[str]:
        """Run one operation, and return what was done, in words. Raise `MistakeError`."""

    def answer(self, request: Request) -> Response | None:
        """Return one of its files."""

    async def run(self, log: Callable[[str, Json], None]) -> None:
        """Let virtual time pass, until cancelled. `log` takes an event with its fields."""


SANDBOX: Final = "sandbox"
"""The topic."""
STEER: Final = "steer"
"""The operation. It has no plan, because operations in a sandbox do no harm."""


@attrs.frozen
class View:
    """The answer to a question: a `put` frame without its id, or an error."""

    text: str
    """Data and the nodes that were not reached, as JSON; or the reason why there are none."""
    at: int = 0
    """Unix milliseconds."""
    is_error: bool = False


@attrs.define(eq=False)
class Subscriber:
    """A browser's subscription to an answer."""

    deliver: Deliver
    every_s: float
    due: float = 0.0
    """When the next answer may be delivered, by Trio's clock."""
    has: str | None = None
    """The text of the last delivered answer."""


@attrs.define(eq=False)
class Question:
    """A question of at least one browser."""

    topic: str
    args: Json
    subscribers: list[Subscriber] = attrs.Factory(list)
    scope: trio.CancelScope = attrs.Factory(trio.CancelScope)
    last: View | None = None

    def spread(self, view: View) -> None:
        """Deliver the answer to the subscribers that have another one and are due."""
        self.last = view
        now = trio.current_time()
        for each in list(self.subscribers):
            if each.has != view.text and now >= each.due:
                each.has, each.due = view.text, now + each.every_s * 0.9
                each.deliver(view)

    @property
    def period(self) -> float:
        """The shortest period of its subscribers."""
        return min((each.every_s for each in self.subscribers), default=1.0)


@attrs.define(eq=False)
class Broker:
    """All questions of one process. `run` must run while there are browsers."""

    observer: Observer
    warn: Callable[[str], None]
    """Logs errors that are bugs. They do not end the node."""
    sandbox: Steered | None = None
    sockets: int = 0
    """The number of connected browsers."""
    _questions: dict[str, Question] = attrs.Factory(dict)
    _nursery: trio.Nursery | None = None
    _at_work: int = 0
    _is_observing: bool = False

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            async with trio.open_nursery() as self._nursery:
                await trio.sleep_forever()
        finally:
            self._nursery = None
            with trio.CancelScope(shield=True):
                await self.observer.client.close()

    def subscribe(self, topic: str, args: Json, subscriber: Subscriber) -> Callable[[], None]:
        """Deliver answers to the subscriber, until the returned function is called."""
        args = {} if topic == SANDBOX else args  # all browsers share one question
        key = encoded({"topic": topic, "args": dict(sorted(args.items()))})
        question = self._questions.get(key)
        if question is None:
            question = self._questions[key] = Question(topic, args)
            question.subscribers.append(subscriber)
            self._start(self._ask, question)
            if topic != SANDBOX:
                self._watch()
        else:
            question.subscribers.append(subscriber)
            if question.last is not None:
                question.spread(question.last)
        return lambda: self._leave(key, question, subscriber)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Keep the connections open while a request runs."""
        self._at_work += 1
        self._watch()
        try:
            yield
        finally:
            self._at_work -= 1

    @property
    def _is_needed(self) -> bool:
        about_nodes = any(each.topic != SANDBOX for each in self._questions.values())
        return about_nodes or self._at_work > 0

    def _watch(self) -> None:
        if not self._is_observing:
            self._is_observing = True
            self._start(self._observe)

    def _start(self, *task: object) -> None:
        assert self._nursery is not None, "`run` runs"
        self._nursery.start_soon(*task)  # type: ignore[arg-type]

    def _leave(self, key: str, question: Question, subscriber: Subscriber) -> None:
        if subscriber in question.subscribers:
            question.subscribers.remove(subscriber)
        if not question.subscribers and self._questions.get(key) is question:
            question.scope.cancel()
            del self._questions[key]

    async def _observe(self) -> None:
        """Run the observer while there are questions, and `LINGER_S` longer."""
        while self._is_needed:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._run_observer)
                await self._until_idle()
                nursery.cancel_scope.cancel()
            self.observer.forget()
            await self.observer.client.close()
        self._is_observing = False

    async def _run_observer(self) -> None:
        while True:
            try:
                await self.observer.run()
            except Exception as error:
                self.warn(f"the console cannot count: this is a bug: {error!r}")
            await trio.sleep(_AFTER_BUG_S)

    async def _until_idle(self) -> None:
        idle_s = 0.0
        while idle_s < LINGER_S:
            await trio.sleep(_LOOK_S)
            idle_s = 0.0 if self._is_needed else idle_s + _LOOK_S

    async def _ask(self, question: Question) -> None:
        """Ask periodically, until the question has no subscribers."""
        with question.scope:
            while True:
                began = trio.current_time()
                question.spread(await self._answer(question))
                took = trio.current_time() - began
                await trio.sleep(max(question.period - took, took * REST))

    async def _answer(self, question: Question) -> View:
        at = int(time.time() * 1000)
        try:
            data, unreached = await self._data(question)
        except (DisqueError, MistakeError) as error:
            return View(str(error), at, is_error=True)
        except Exception as error:
            self.warn(f"the console has no answer: this is a bug: {error!r}")
            return View("this has failed: the log says why", at, is_error=True)
        text = await encoded_in_turns(data)
        return View(f'"data":{text},"unreached":{encoded(dict(unreached))}', at)

    async def _data(self, question: Question) -> Answer:
        if question.topic != SANDBOX:
            return await self.observer.answer(question.topic, question.args)
        if self.sandbox is None:
            raise MistakeError("this console has no sandbox: begin it with --sandbox")
        return self.sandbox.state(), {}
