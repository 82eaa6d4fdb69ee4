"""`/api/v1`: checks of a request's user, right and body; its dispatch; its answer."""

import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final

import attrs
import trio

from disque_trio.client.client import Client
from disque_trio.client.errors import DisqueError
from disque_trio.client.naming import process_name
from disque_trio.observe.operations.operation import Operation
from disque_trio.observe.values import Json
from disque_trio.web.api.openapi import document
from disque_trio.web.api.routes import PREFIX, Call, Reply, Route, response
from disque_trio.web.api.table import found
from disque_trio.web.audit import Audit
from disque_trio.web.auth import Authenticator
from disque_trio.web.messages import JSON, Expected, Request, Response
from disque_trio.web.pieces import encoded_in_turns
from disque_trio.web.problems import ProblemError, problem_of, retry_after, too_large
from disque_trio.web.roles import CHANGES, NOBODY, User
from disque_trio.web.source import Source
from disque_trio.web.subscriptions import Broker
from disque_trio.worker.operating.asking import Found
from disque_trio.worker.operating.plans import MistakeError, Outcome, Plan

WAITING: Final = 128
"""The maximum number of requests that wait for jobs at the same time."""
_FORM: Final = (b"application/x-www-form-urlencoded", b"multipart/form-data")
"""`curl -d` sends the first one by default; a job's body must not have such a type."""


@attrs.define(eq=False)
class Api:
    """The API of one web port."""

    source: Source
    auth: Authenticator
    broker: Broker
    audit: Audit
    jobs: Client = attrs.field(init=False)
    """The client that adds and takes jobs. Its connections last longer than those of the
    console."""
    _waiting: int = 0

    @jobs.default
    def _client(self) -> Client:
        name, asking = process_name("disque-trio-http"), self.source.client
        return Client(asking.url, name=name, connect=asking.connect)

    @property
    def client(self) -> Client:
        """The client for operations."""
        return self.broker.observer.client

    async def begin(self, request: Request) -> Response | Expected:
        """Return the answer to a request's head, or what it expects of the body."""
        try:
            return await self._begun(request)
        except ProblemError as problem:
            return problem.response()

    async def _begun(self, request: Request) -> Response | Expected:
        if not self.auth.knows_host(request):
            raise ProblemError(
                421, "HOST", "the name in the Host header is not a name of the node",
                "use its address, or add the name to 'web-names'",
            )  # fmt: skip
        user = await self._user(request)
        path = request.path.removeprefix(PREFIX)
        is_document = path == "/openapi.json"
        routes, names = found(path)
        if not routes and not is_document:
            raise ProblemError(404, "NOPATH", "there is nothing at this path", _DOCUMENT)
        method, methods = request.method.decode(), ["GET"] if is_document else [*routes]
        if "GET" in methods:
            methods.append("HEAD")
        allowed = (b"Allow", ", ".join([*methods, "OPTIONS"]).encode())
        if method == "OPTIONS":
            return Response(204, headers=(allowed,))
        if method not in methods:
            raise ProblemError(
                405, "METHOD", f"{method} is not served here", f"use {', '.join(methods)}", allowed
            )
        if is_document:
            return Response(200, document(), JSON)
        route = routes["GET" if method == "HEAD" else method]
        self._check_right(request, user, route)
        most = self._checked_body(request, route)
        return Expected(
            most,
            lambda whole: self._answer(route, whole, names, user),
            waits=route.waits,
        )

    async def _user(self, request: Request) -> User:
        if self.auth.is_barred(request):
            raise ProblemError(
                403, "PROTECTED", "the node has no password, so it serves its own machine only",
                "set 'requirepass-file' or 'web-users-file'",
            )  # fmt: skip
        user = await self.auth.user_of(request)
        if user.role != NOBODY:
            return user
        if self.auth.must_wait(request.ip):
            raise ProblemError(
                429, "GUESSES", "too many wrong passwords", "wait a minute", retry_after(60)
            )
        raise ProblemError(
            401, "UNAUTHORIZED", "a password or token is missing or wrong",
            "send Authorization: Bearer TOKEN, or Basic with name and password",
            (b"WWW-Authenticate", b'Bearer realm="disque"'),
        )  # fmt: skip

    def _check_right(self, request: Request, user: User, route: Route) -> None:
        if not self.source.has_cluster:
            raise ProblemError(404, "NOCLUSTER", "this console has no cluster", "start it with one")
        if route.method != "GET" and not self.auth.is_own_request(request):
            raise ProblemError(
                403, "FOREIGN", "the request comes from a page of another site",
                "programs send Authorization, and neither Origin nor Sec-Fetch-Site",
            )  # fmt: skip
        if user.is_reading and route.right in CHANGES:
            raise ProblemError(403, "READONLY", "this port only reads", "see 'web-read-only'")
        if not user.may(route.right):
            raise ProblemError(
                403, "FORBIDDEN", f"the role {user.role} may not do this", "ask an admin",
                right=route.right,
            )  # fmt: skip

    def _checked_body(self, request: Request, route: Route) -> int:
        """Return the maximum size of the body. Raise `ProblemError` for an invalid type, coding or
        size."""
        most = min(route.most, self.source.config().proto_max_bulk_len)
        kind, has_raw = media_type(request), route.has_raw
        length = request.headers.get(b"content-length", b"0")
        is_empty = length == b"0" and b"transfer-encoding" not in request.headers
        if route.has_body and not is_empty and kind != JSON and (not has_raw or kind in _FORM):
            raise ProblemError(
                415, "MEDIATYPE", f"the body is {kind.decode('latin-1') or 'of no type'}",
                f"send Content-Type: application/json{' or application/octet-stream' * has_raw}",
            )  # fmt: skip
        coding = request.headers.get(b"content-encoding", b"identity").decode("latin-1")
        if route.has_body and coding.lower() != "identity":
            raise ProblemError(
                415, "CODING", f"the body is encoded: {coding}", "send it without Content-Encoding"
            )
        if length.isdigit() and int(length) > most:
            raise too_large(most)
        return most

    async def _answer(
        self, route: Route, request: Request, names: Mapping[str, str], user: User
    ) -> Response:
        kind = media_type(request)
        if not request.body and not kind:
            kind = JSON
        try:
            call = route.call(names, request.query, kind, request.body, user, request.ip)
            reply = await route.answer(self, call)
        except ProblemError as problem:
            return problem.response()
        except (DisqueError, MistakeError) as error:
            return problem_of(error).response()
        try:
            text = await encoded_in_turns(reply.data)
        except trio.Cancelled:
            if reply.undelivered is not None:
                await reply.undelivered()
            raise
        return response(attrs.evolve(reply, status=_status(route, reply)), text)

    async def ask(self, topic: str, args: Json) -> Json:
        """Return the answer of a topic, with the nodes that have not answered."""
        with self.broker.at_work():
            data, unreached = await self.broker.observer.answer(topic, args)
        return {**data, "unreached": dict(unreached)}

    async def ids(self, fits: Json) -> Found[str]:
        """Return the ids of the jobs that match."""
        with self.broker.at_work():
            return await self.broker.observer.ids(fits)

    async def carried_out(
        self, call: Call, operation: Operation, plan: Plan, outcome: Outcome
    ) -> None:
        """Run a plan, and note it in the audit log."""
        is_done = False
        try:
            with self.broker.at_work():
                await plan.run(outcome, lambda _: None)
            is_done = True
        except (MistakeError, DisqueError) as error:
            outcome.failed.append(str(error))
            is_done = True
        finally:
            self.audit.note(
                call.user, call.ip, "http", operation.key, plan, outcome, is_stopped=not is_done
            )

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Count a request that waits for jobs. Raise `ProblemError` if there are too many."""
        if self._waiting >= WAITING:
            raise ProblemError(
                503, "BUSY", f"{WAITING} requests already wait for jobs", "ask another node",
                retry_after(1),
            )  # fmt: skip
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        """Close the connections for jobs."""
        with trio.CancelScope(shield=True):
            await self.jobs.close()


_DOCUMENT: Final = f"{PREFIX}/openapi.json lists all paths"
Begin = Callable[[Request], Awaitable[Response | Expected]]


def _status(route: Route, reply: Reply) -> int:
    return reply.status if reply.status != 200 else route.status


def media_type(request: Request) -> bytes:
    """Return the content type without its parameters, in lower case."""
    return request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
