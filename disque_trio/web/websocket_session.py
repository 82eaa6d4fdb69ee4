"""The WebSocket of one browser: its questions, the answers, its operations, and its end."""

import contextlib
import json
import math
import secrets
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import attrs
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection

from disque_trio.client.errors import DisqueError
from disque_trio.observe import bulk, operations
from disque_trio.observe.observer import TOPICS
from disque_trio.observe.values import Json, encoded
from disque_trio.web.pieces import send
from disque_trio.web.roles import OPERATE, User
from disque_trio.web.subscriptions import SANDBOX, STEER, Broker, Subscriber, View
from disque_trio.worker.operating.plans import MistakeError, Outcome, Plan

EVERY_MS: Final = 500
"""The minimum period of a subscription."""
SANDBOX_MS: Final = 100
"""The same for the sandbox, which asks no node."""
SUBSCRIPTIONS: Final = 32
TOKEN_S: Final = 60.0
"""How long a plan stays valid."""
PLANS: Final = 16
AT_ONCE: Final = 4
"""The maximum number of operations of one browser at the same time."""
UNREAD: Final = 256
"""The maximum number of unsent frames, in addition to the newest answer of each subscription."""
_QUESTION: Final = 4096
"""The maximum size of the arguments of a topic."""
PING_S: Final = 20.0
PONG_S: Final = 10.0


@attrs.frozen(kw_only=True)
class Visitor:
    """The user of a connection."""

    user: Callable[[], User]
    """Returns the user with the current rights: the port may have become read-only."""
    is_still_in: Callable[[], bool]
    """Is the user's login still valid?"""
    note: Callable[..., None]
    """Adds an operation to the audit log (`audit.Audit.note`)."""
    hello: Json
    """The first frame."""


class _EndError(Exception):
    """The socket ends; the text is the reason."""


@attrs.define
class _Planned:
    operation: str
    plan: Plan
    until: float


@attrs.define(eq=False)
class WebSocketSession:
    """The session with one browser. `run` is the whole of it."""

    broker: Broker
    visitor: Visitor
    socket: WebSocketConnection
    _leave: dict[int, Callable[[], None]] = attrs.Factory(dict)
    """By subscription: the function that ends it."""
    _fresh: dict[int, View] = attrs.Factory(dict)
    """By subscription: the newest answer, if it has not been sent."""
    _frames: deque[str] = attrs.Factory(deque)
    _wake: trio.Event = attrs.Factory(trio.Event)
    _plans: dict[str, _Planned] = attrs.Factory(dict)
    _running: dict[int, trio.CancelScope] = attrs.Factory(dict)
    _nursery: trio.Nursery | None = None
    _is_within: bool = False
    """Has only a part of an answer been sent?"""

    async def run(self) -> None:
        """Run until the browser leaves, is too slow, or its login ends."""
        self._say({"t": "hello", "v": 1, **self.visitor.hello})
        try:
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(self._send)
                self._nursery.start_soon(self._watch)
                await self._read()
                self._nursery.cancel_scope.cancel()
        except* _EndError as group:
            await self._bye(str(_first(group)))
        except* ConnectionClosed:
            pass
        finally:
            for leave in self._leave.values():
                leave()

    async def _bye(self, reason: str) -> None:
        if self._is_within:
            return  # the browser would read it as a part of the message
        gone = (ConnectionClosed, trio.BrokenResourceError, trio.ClosedResourceError)
        with trio.move_on_after(1.0, shield=True), contextlib.suppress(*gone):
            await self.socket.send_message(encoded({"t": "bye", "says": reason}))

    def _say(self, frame: Json) -> None:
        if len(self._frames) >= UNREAD:
            raise _EndError("it does not read what it has asked for")
        self._frames.append(encoded(frame))
        self._wake.set()

    def _fail(self, id: object, text: str) -> None:
        self._say({"t": "error", "id": id, "says": text})

    async def _send(self) -> None:
        """Send frames in order, then the newest answers. Older answers are not queued for a slow
        browser, and it never receives them."""
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            while self._frames or self._fresh:
                while self._frames:
                    await self.socket.send_message(self._frames.popleft())
                for id in list(self._fresh):
                    if view := self._fresh.pop(id, None):
                        await self._put(id, view)

    async def _put(self, id: int, view: View) -> None:
        if view.is_error:
            await self.socket.send_message(encoded({"t": "error", "id": id, "says": view.text}))
            return
        self._is_within = True
        await send(self.socket, f'{{"t":"put","id":{id},"at":{view.at},', view.text, "}")
        self._is_within = False

    async def _watch(self) -> None:
        """Send pings, and end the socket if one is not answered or the login has ended."""
        while True:
            await trio.sleep(PING_S)
            if not self.visitor.is_still_in():
                raise _EndError("the session has ended: log in again")
            with trio.move_on_after(PONG_S) as limit:
                await self.socket.ping()
            if limit.cancelled_caught:
                raise _EndError("it does not answer pings")

    async def _read(self) -> None:
        while True:
            message = await self.socket.get_message()
            try:
                frame = json.loads(message)
            except (ValueError, RecursionError):
                raise _EndError("a frame is no JSON") from None
            if not isinstance(frame, dict):
                raise _EndError("a frame is no object")
            try:
                await self._take(frame)
            except MistakeError as error:
                self._fail(_number(frame), str(error))

    async def _take(self, frame: Json) -> None:
        match frame.get("t"):
            case "sub":
                self._subscribe(frame)
            case "unsub":
                self._unsubscribe(_id(frame))
            case "do":
                self._do(frame)
            case "stop":
                if scope := self._running.get(_id(frame)):
                    scope.cancel()
            case other:
                raise MistakeError(f"there is no frame '{other}'")
        await trio.lowlevel.checkpoint()

    def _subscribe(self, frame: Json) -> None:
        id, topic, args = _id(frame), frame.get("topic"), _args(frame, _QUESTION)
        if not isinstance(topic, str) or topic not in {*TOPICS, SANDBOX}:
            raise MistakeError(f"there is no topic '{topic}': {', '.join(TOPICS)}")
        self._unsubscribe(id)
        if len(self._leave) >= SUBSCRIPTIONS:
            raise MistakeError(f"a browser has {SUBSCRIPTIONS} subscriptions at most")
        every = frame.get("every", 1000)
        if not isinstance(every, int | float) or not math.isfinite(every):
            raise MistakeError("'every' is no number of milliseconds")
        least = SANDBOX_MS if topic == SANDBOX else EVERY_MS
        subscriber = Subscriber(lambda view: self._deliver(id, view), max(every, least) / 1000)
        self._leave[id] = self.broker.subscribe(topic, args, subscriber)

    def _deliver(self, id: int, view: View) -> None:
        self._fresh[id] = view
        self._wake.set()

    def _unsubscribe(self, id: int) -> None:
        if leave := self._leave.pop(id, None):
            leave()
        self._fresh.pop(id, None)

    def _do(self, frame: Json) -> None:
        id, token = _id(frame), frame.get("token")
        user, operation = self.visitor.user(), frame.get("operation")
        if not user.may(OPERATE):
            raise MistakeError("this console only reads")
        if token is None and operation != STEER and not user.may_do(operations.found(operation)):
            raise MistakeError(f"the role {user.role} may not run '{operation}'")
        if operation == STEER:
            self._steer(id, _args(frame))
            return
        if len(self._running) >= AT_ONCE or id in self._running:
            raise MistakeError(f"a browser does {AT_ONCE} things at the same time at most")
        assert self._nursery is not None
        scope = self._running[id] = trio.CancelScope()
        if token is None:
            self._nursery.start_soon(self._plan, id, scope, frame)
            return
        planned = self._plans.pop(token, None) if isinstance(token, str) else None
        if planned is None or planned.until < trio.current_time():
            del self._running[id]
            raise MistakeError("the plan is a minute old, or was carried out: ask for a new one")
        self._nursery.start_soon(self._carry_out, id, scope, planned)

    def _steer(self, id: int, args: Json) -> None:
        if self.broker.sandbox is None:
            raise MistakeError("this console has no sandbox: begin it with --sandbox")
        lines = self.broker.sandbox.do(args)
        self._say({"t": "done", "id": id, "says": lines, "failed": []})

    async def _plan(self, id: int, scope: trio.CancelScope, frame: Json) -> None:
        try:
            with scope, self.broker.at_work():
                operation = operations.found(frame.get("operation"))
                observer, fits = self.broker.observer, frame.get("filter")
                if isinstance(fits, dict):
                    ids = await observer.ids(fits)
                    plan = await bulk.planned(operation, observer.client, ids, _args(frame))
                else:
                    plan = await operation.planned(observer.client, _args(frame))
                self._keep(id, operation.key, plan)
        except (MistakeError, DisqueError) as error:
            self._fail(id, str(error))
        finally:
            del self._running[id]

    def _keep(self, id: int, operation: str, plan: Plan) -> None:
        token = secrets.token_urlsafe(18)
        self._plans[token] = _Planned(operation, plan, trio.current_time() + TOKEN_S)
        if len(self._plans) > PLANS:
            del self._plans[next(iter(self._plans))]
        details = {"says": plan.says, "unasked": plan.unasked, "confirm": plan.confirm}
        self._say({"t": "plan", "id": id, "token": token, **details})

    async def _carry_out(self, id: int, scope: trio.CancelScope, planned: _Planned) -> None:
        outcome = Outcome(unasked=list(planned.plan.unasked))
        try:
            with scope, self.broker.at_work():
                await planned.plan.run(
                    outcome, lambda line: self._say({"t": "progress", "id": id, "says": line})
                )
        except (MistakeError, DisqueError) as error:
            outcome.failed.append(str(error))
        finally:
            del self._running[id]
            self._note(planned, outcome, is_cancelled=scope.cancelled_caught)
        if scope.cancelled_caught:
            outcome.failed.append("it was stopped")
        failed = [*outcome.failed, *outcome.unasked]
        self._say({"t": "done", "id": id, "says": outcome.says, "failed": failed})

    def _note(self, planned: _Planned, outcome: Outcome, *, is_cancelled: bool) -> None:
        self.visitor.note(
            user=self.visitor.user(),
            operation=planned.operation,
            plan=planned.plan,
            outcome=outcome,
            is_stopped=is_cancelled,
        )


def _id(frame: Json) -> int:
    id = _number(frame)
    if id is None:
        raise MistakeError("'id' is no number")
    return id


def _number(frame: Json) -> int | None:
    id: Any = frame.get("id")
    return id if isinstance(id, int) and not isinstance(id, bool) and abs(id) < 1 << 53 else None


def _args(frame: Json, most: int | None = None) -> Json:
    """Return the arguments of a frame. Those of operations may contain a body, so only the size of
    a frame limits them."""
    args = frame.get("args", {})
    if not isinstance(args, dict) or (most and len(encoded(args)) > most):
        raise MistakeError("'args' is no object, or a large one")
    return args


def _first(group: BaseExceptionGroup[_EndError]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
