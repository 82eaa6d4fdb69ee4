"""What a simulated node needs around it: its links, and its clients' connections."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from disque_trio.statemachine.base import LinkId, Reply
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.messages import Message

Host_contra = TypeVar("Host_contra", contravariant=True)


class NodeLinks(Protocol[Host_contra]):
    """The links of a node (`links`)."""

    def dial(self, host: Host_contra, link: LinkId, ip: str, port: int) -> None:
        """Open a link."""

    def send(self, host: Host_contra, links: Sequence[LinkId], message: Message) -> None:
        """Send on these links."""

    def hang_up(self, host: Host_contra, link: LinkId) -> None:
        """End a link."""

    def crashed(self, host: Host_contra) -> None:
        """The process has ended: end its links."""


class NodeClients(Protocol[Host_contra]):
    """The clients of a node (`clients`)."""

    def reply(self, host: Host_contra, client: Client, reply: Reply) -> None:
        """Send a reply to a client."""

    def close(self, host: Host_contra, client: Client) -> None:
        """Disconnect a client."""

    def resume(self, host: Host_contra, client: Client) -> None:
        """Give the machine the requests that have waited."""

    def client_name(self, host: Host_contra, client: int) -> str:
        """The run's name for the client of that number."""

    def crashed(self, host: Host_contra) -> None:
        """The process has ended: end its clients' connections."""
