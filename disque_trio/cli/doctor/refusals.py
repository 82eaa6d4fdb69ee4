"""Refused clients and bus links, by reason (INFO stats)."""

from collections.abc import Iterator
from typing import Final

import attrs

from disque_trio.cli.doctor.findings import ANEW, Finding, warning
from disque_trio.cli.doctor.nodes import NodeFacts


@attrs.frozen
class Meaning:
    """The text for one reason, and what to do."""

    why: str
    advice: str


CLIENTS: Final = {
    "maxclients": Meaning(
        "because there were too many", "raise maxclients and the open file limit"
    ),
    "tls": Meaning(
        "in the TLS handshake",
        "its log says why: clients without a certificate where tls-auth-clients asks for one, "
        "that do not trust the node's, or that speak plainly to the tls-port",
    ),
    "protected-mode": Meaning(
        "because the node has no password and they came from elsewhere",
        "set requirepass-file (docs/security.md)",
    ),
    "unauthenticated-clients": Meaning(
        "because too many of their address had not given the password yet",
        "its log has the addresses: raise unauthenticated-clients if they are yours",
    ),
    "auth-timeout": Meaning(
        "because they gave no password in time",
        "its log has the addresses: clients that connect long before they speak need AUTH first",
    ),
}
LINKS: Final = {
    "cluster-secret": Meaning(
        "because the other side did not prove the cluster's secret",
        "its log has the addresses. Nodes of this cluster: give all the same cluster-secret-file "
        "(docs/security.md). Anybody else: keep them from the bus port",
    ),
    "tls": Meaning(
        "in the TLS handshake",
        "its log has the addresses and the reasons: tls-cluster must be the same on all nodes, "
        "and their certificates signed by an authority in tls-ca-cert-file",
    ),
    "silence": Meaning(
        "because the other side did not say in time who it is",
        "its log has the addresses: a node without cluster-secret-file or tls-cluster where this "
        "one has it, or no node at all",
    ),
    "no node": Meaning(
        "because the other side was no node", "restrict access to the bus port; see its log"
    ),
    "too many": Meaning(
        "because there were too many", "restrict access to the bus port; see its log"
    ),
}


def judge(node: NodeFacts) -> Iterator[Finding]:
    """Refusals since the start. An original server counts only those by `maxclients`."""
    clients = node.counts("rejected_connections_by_reason")
    if not node.is_ours and node.number("rejected_connections"):
        clients = {"maxclients": node.number("rejected_connections")}
    yield from _told(node, "client", clients, CLIENTS)
    yield from _told(node, "bus link", node.counts("bus_links_refused_by_reason"), LINKS)


def _told(
    node: NodeFacts, who: str, counts: dict[str, int], meanings: dict[str, Meaning]
) -> Iterator[Finding]:
    for reason, count in counts.items():
        meaning = meanings.get(reason, Meaning(f"({reason})", "see its log"))
        were = f"{who} was" if count == 1 else f"{who}s were"
        yield warning(
            node.where, f"{count} {were} refused {meaning.why}", f"{meaning.advice}; {ANEW}"
        )
