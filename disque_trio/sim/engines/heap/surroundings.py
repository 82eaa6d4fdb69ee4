"""What surrounds a simulated node: who carries its links, and who its clients' connections."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from disque_trio.statemachine.base import LinkId, Reply
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.messages import Message

Host_contra = TypeVar("Host_contra", contravariant=True)


class NodeLinks(Protocol[Host_contra]):
    """Who carries links (`wires`)."""

    def dial(self, host: Host_contra, link: LinkId, ip: str, port: int) -> None:
        """Open a link."""

    def send(self, host: Host_contra, links: Sequence[LinkId], message: Message) -> None:
        """Send on these links."""

    def hang_up(self, host: Host_contra, link: LinkId) -> None:
        """End a link."""

    def crashed(self, host: Host_contra) -> None:
        """The process has ended, and with it its links."""


class NodeClients(Protocol[Host_contra]):
    """Who carries clients' connections (`lanes`)."""

    def reply(self, host: Host_contra, client: Client, reply: Reply) -> None:
        """Answer a client."""

    def close(self, host: Host_contra, client: Client) -> None:
        """Disconnect a client."""

    def feed(self, host: Host_contra, client: Client) -> None:
        """Give the machine what the client has sent meanwhile."""

    def client_name(self, host: Host_contra, client: int) -> str:
        """How the run calls the client of that number."""

    def crashed(self, host: Host_contra) -> None:
        """The process has ended, and with it its clients' connections."""
