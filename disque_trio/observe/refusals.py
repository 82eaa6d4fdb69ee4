"""Refused clients, requests and bus links, by reason (INFO stats)."""

import math
from collections.abc import Iterator
from typing import Final

import attrs

from disque_trio.observe.cluster import NodeFacts
from disque_trio.observe.finding import ANEW, Finding, note, problem, spelled, warning
from disque_trio.statemachine.refusals import REFUSALS


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
    "http": Meaning(
        "because they spoke HTTP, which a web page can cause",
        "its log has the addresses: set requirepass-file, so that no page can give commands "
        "(docs/security.md); for the console and metrics, use the web-port",
    ),
    "proxy-protocol": Meaning(
        "because a load balancer announced them with the PROXY protocol",
        "turn that off at the load balancer (HAProxy: send-proxy)",
    ),
    "other-protocol": Meaning(
        "because they spoke another protocol, such as TLS, SMTP or memcached",
        "its log has the addresses: restrict access to the port",
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


_RECENT_S: Final = 600
"""An older refusal is no trouble any more."""


def judge(node: NodeFacts) -> Iterator[Finding]:
    """Refusals since the start. An original server counts only those by `maxclients`."""
    clients = node.counts("rejected_connections_by_reason")
    if not node.is_ours and node.number("rejected_connections"):
        clients = {"maxclients": node.number("rejected_connections")}
    yield from _told(node, "client", clients, CLIENTS)
    yield from _requests(node)
    yield from _told(node, "bus link", node.counts("bus_links_refused_by_reason"), LINKS)


def _requests(node: NodeFacts) -> Iterator[Finding]:
    """Requests that were refused for want of nodes, memory and so on."""
    last = node.counts("last_refused_by_cause")
    for code, count in node.counts("refused_requests_by_cause").items():
        meaning = REFUSALS.get(code.encode())
        why, advice = ("", "see its log") if meaning is None else (meaning.why, meaning.advice)
        were = "1 request was" if count == 1 else f"{count} requests were"
        ago = max(int(node.now_s) - last.get(code, 0), 0)
        what = f"{were} refused with {code}, the last {spelled(ago)} ago" + (why and f": {why}")
        kind = problem if meaning is None or meaning.is_problem else warning
        found = note(node.where, what) if ago > _RECENT_S else kind(node.where, what, advice)
        yield attrs.evolve(found, stake=math.inf)  # producers are told no, which is the worst


def _told(
    node: NodeFacts, who: str, counts: dict[str, int], meanings: dict[str, Meaning]
) -> Iterator[Finding]:
    for reason, count in counts.items():
        meaning = meanings.get(reason, Meaning(f"({reason})", "see its log"))
        were = f"{who} was" if count == 1 else f"{who}s were"
        yield warning(
            node.where, f"{count} {were} refused {meaning.why}", f"{meaning.advice}; {ANEW}"
        )
