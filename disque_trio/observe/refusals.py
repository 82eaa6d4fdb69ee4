"""Refused clients, requests and bus links, by cause (INFO stats)."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from disque_trio.observe.cluster import NodeFacts
from disque_trio.observe.finding import ANEW, Finding, note, problem, spelled, warning
from disque_trio.observe.values import readable
from disque_trio.statemachine.refusals import REFUSALS
from disque_trio.terminal.counting import counted


@attrs.frozen
class Meaning:
    """The text for a cause of refusals, and what to do."""

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
    "web-password": Meaning(
        "because they gave a wrong password at the web port",
        "its log has the addresses: restrict access to the web port if you do not know them",
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
    "protected-mode": Meaning(
        "because the node has neither a password nor a cluster secret, and they came from "
        "elsewhere",
        "give it the cluster-secret-file of the others (docs/security.md), or 'protected-mode no' "
        "if only trusted machines reach its bus port",
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


RECENT_S: Final = 600
"""An older refusal is only a note."""


def judge(node: NodeFacts) -> Iterator[Finding]:
    """Yield findings about refused connections since the start. An original server counts only
    those by `maxclients`."""
    clients = node.counts("rejected_connections_by_reason")
    if not node.is_ours and node.number("rejected_connections"):
        clients = {"maxclients": node.number("rejected_connections")}
    yield from _report(node, "client", clients, CLIENTS)
    yield from _report(node, "bus link", node.counts("bus_links_refused_by_reason"), LINKS)


@attrs.frozen
class _Refused:
    """The requests that one node has refused for one cause, in the last streak of refusals."""

    where: str
    count: int
    since: int
    """In Unix seconds."""
    lasted_s: int
    ago_s: int
    """Seconds since the last refusal."""


def requests(nodes: Sequence[NodeFacts], closed: Sequence[str] = ()) -> Iterator[Finding]:
    """Yield one finding for each cause of refused requests (too few nodes, no memory and so on),
    with the nodes that still refuse. Older refusals are a note. `closed` are the queues that are
    paused in input."""
    found: dict[tuple[str, bool], list[_Refused]] = {}
    for node in nodes:
        since, lately = (
            node.counts("refused_since_by_cause"),
            node.counts("refused_lately_by_cause"),
        )
        total, now = node.counts("refused_requests_by_cause"), int(node.now_s)
        for code, last in node.counts("last_refused_by_cause").items():
            began = since.get(code, last)
            count = lately.get(code, total.get(code, 0))
            each = _Refused(node.where, count, began, last - began, max(now - last, 0))
            found.setdefault((code, each.ago_s > RECENT_S), []).append(each)
    for (code, is_past), refused in found.items():
        made = _of_cause(code, refused, is_past=is_past)
        if code == "NOREPL" and not is_past:
            made = attrs.evolve(made, advice=resuming(closed) + made.advice)
        yield made


def resuming(closed: Sequence[str]) -> str:
    """Return the first advice for jobs that lack copies while queues are paused in input."""
    if not closed:
        return ""
    names = f'"{readable(closed[0])}"' + (f" and {len(closed) - 1:,} more" * (len(closed) > 1))
    return (
        f"a node where a queue is paused in input takes no copies of its jobs: disque-trio queues "
        f"resume ends the pause of {names}. If that is not it, "
    )


def _of_cause(code: str, refused: Sequence[_Refused], *, is_past: bool) -> Finding:
    meaning = REFUSALS.get(code.encode())
    why, advice = ("", "see its log") if meaning is None else (meaning.why, meaning.advice)
    count = sum(each.count for each in refused)
    lasted_s = max(each.lasted_s for each in refused)
    where = ", ".join(each.where for each in refused)
    were = counted(count, "request was", "requests were")
    rate = f", {count / lasted_s:.2g}/s for {spelled(lasted_s)}" if lasted_s and count > 1 else ""
    last = f", the last {spelled(min(each.ago_s for each in refused))} ago"
    what = f"{were} refused with {code}{rate}{last}" + (why and f": {why}")
    kind = problem if meaning is None or meaning.is_problem else warning
    made = note(where, what) if is_past else kind(where, what, advice)
    # Refusals affect producers, so they rank above all that waits.
    since = min(each.since for each in refused)
    return attrs.evolve(made, kind="refused", stake=math.inf, since=since)


def _report(
    node: NodeFacts, who: str, counts: dict[str, int], meanings: dict[str, Meaning]
) -> Iterator[Finding]:
    for reason, count in counts.items():
        meaning = meanings.get(reason, Meaning(f"({reason})", "see its log"))
        were = f"{who} was" if count == 1 else f"{who}s were"
        yield warning(
            node.where, f"{count} {were} refused {meaning.why}", f"{meaning.advice}; {ANEW}"
        )
