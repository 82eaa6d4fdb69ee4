"""A client of all nodes that no silent node delays."""

from collections.abc import Sequence
from typing import Any, Final

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.base import ClusterClient
from disque_trio.client.client import Client
from disque_trio.client.command import Command
from disque_trio.client.errors import ConnectionFailedError, DisqueError, LostError
from disque_trio.client.greeting import Greeting
from disque_trio.client.naming import as_one_word
from disque_trio.client.refusals import AuthenticationError
from disque_trio.statemachine.base import Reply

ANSWER_S: Final = 1.0
"""A node that takes longer to answer is silent."""
PROBE_S: Final = 1.0
"""The interval between two attempts to reach silent nodes."""
_RECENT_S: Final = 5.0
"""`describe` omits the duration of a silence that is shorter."""
ON_PASSWORD: Final = "set the password in $DISQUE_AUTH or in the URL: disque://:PASSWORD@HOST:PORT"
WITHOUT_PASSWORD: Final = "give the node the password of the others: CONFIG SET requirepass"


def query(*words: str) -> Command[Any]:
    """Return a command that changes nothing: it may be repeated, and its outcome is never
    unknown."""
    return attrs.evolve(commands.call(*words), is_repeatable=True)


@attrs.frozen
class Silence:
    """Why a node is not asked now."""

    since: float
    """When the unanswered request was sent, by anyio's clock."""
    reason: str
    advice: str = ""
    is_there: bool = False
    """Does the node run, and refuse to answer?"""

    def describe(self, now: float) -> str:
        """Return the reason, with the duration of a longer silence."""
        seconds = now - self.since
        return (
            self.reason if seconds < _RECENT_S else f"no answer for {seconds:.0f} s: {self.reason}"
        )


@attrs.define(eq=False, repr=False)
class DeadlineClient(Client):
    """A client with a deadline for each request, except for commands that wait. No request goes to
    a node that has missed the deadline until it answers `retry`, so it does not delay the
    others."""

    silent: dict[str, Silence] = attrs.field(init=False, factory=dict)
    """By address."""
    answer_s: float = attrs.field(factory=lambda: ANSWER_S, kw_only=True)
    """A node that takes longer to answer is silent."""
    follows_tls: bool = attrs.field(default=False, kw_only=True)
    """Under TLS, does a survey ask the other nodes, too? Nodes report only their plain ports, so
    each is assumed to have the same distance between its two ports as the node that reports it."""

    @property
    def own_name(self) -> str:
        """The name of its connections, as nodes report it."""
        return as_one_word(self._greeting().name).decode()

    def _greeting(self) -> Greeting:
        return attrs.evolve(ClusterClient._greeting(self), is_lenient=True)

    async def _ask(self, address: Address, asked: Sequence[Command[Any]]) -> list[Reply]:
        if any(each.wait_s for each in asked):
            return await Client._ask(self, address, asked)
        name, now, was_sent = str(address), anyio.current_time(), True
        if silence := self.silent.get(name):
            raise ConnectionFailedError(silence.describe(now))
        try:
            with anyio.fail_after(self.answer_s):
                return await Client._exchange(self, address, asked)
        except TimeoutError:
            silence = Silence(now, f"no answer within {self.answer_s:g} s")
        except ConnectionFailedError as error:
            silence = silence_of(error, now)
            was_sent = isinstance(error, LostError)
        is_unknown = was_sent and not all(each.is_repeatable for each in asked)
        self.silent[name] = silence
        # The client must not send a command that is not repeatable to the next node.
        raise (LostError if is_unknown else ConnectionFailedError)(silence.reason)

    async def probe(self) -> None:
        """Retry silent nodes periodically, until cancelled."""
        while True:
            await anyio.sleep(PROBE_S)
            await self.retry()

    async def retry(self) -> None:
        """Retry each silent node once."""
        known = {str(each): each for each in self.nodes.order(anyio.current_time())}
        async with anyio.create_task_group() as tasks:
            for name in list(self.silent):
                if name in known:
                    tasks.start_soon(self._try, known[name])
                else:
                    del self.silent[name]

    async def _try(self, address: Address) -> None:
        silence = self.silent[str(address)]
        try:
            with anyio.fail_after(self.answer_s):
                await Client._exchange(self, address, [commands.ping()])
        except TimeoutError:
            return
        except DisqueError as error:
            self.silent[str(address)] = silence_of(error, silence.since)
        else:
            self.silent.pop(str(address), None)


def silence_of(error: DisqueError, since: float) -> Silence:
    """Return the silence of a node whose request failed with this error."""
    if isinstance(error, ConnectionFailedError):
        return Silence(since, error.reason, error.advice, error.is_there)
    if not isinstance(error, AuthenticationError):
        return Silence(since, str(error), is_there=True)
    what, advice = error.text, ON_PASSWORD
    if error.code == "DENIED":  # the node's text has the advice
        what, _, advice = error.text.partition(". ")
    elif "no password is set" in error.text:
        advice = WITHOUT_PASSWORD
    return Silence(since, f"{error.code} {what}", advice, is_there=True)
