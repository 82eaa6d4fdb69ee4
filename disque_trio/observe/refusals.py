"""Refused clients, requests and bus links, by cause (INFO stats)."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from disque_trio.observe.cluster import NodeFacts
from disque_trio.observe.finding import RESET, Finding, note, problem, spelled, warning
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
        "because maxclients was reached", "raise maxclients and the open file limit"
    ),
    "tls": Meaning(
        "in the TLS handshake",
        "see its log for the reasons, such as: no certificate, although tls-auth-clients requires "
        "one; no trust in the certificate of the node; no TLS on the tls-port",
    ),
    "protected-mode": Meaning(
        "because the node has no password and they came from another machine",
        "set requirepass-file (docs/security.md)",
    ),
    "unauthenticated-clients": Meaning(
        "because too many clients of their address had not authenticated yet",
        "see its log for the addresses: raise unauthenticated-clients if they are yours",
    ),
    "auth-timeout": Meaning(
        "because they did not authenticate in time",
        "see its log for the addresses: clients must send AUTH as soon as they connect",
    ),
    "http": Meaning(
        "because they sent HTTP, which a web page can cause",
        "see its log for the addresses: set requirepass-file, so that no page can send commands "
        "(docs/security.md); for the console and metrics, use the web-port",
    ),
    "proxy-protocol": Meaning(
        "because a load balancer used the PROXY protocol",
        "turn that off at the load balancer (HAProxy: send-proxy)",
    ),
    "other-protocol": Meaning(
        "because they used another protocol, such as TLS, SMTP or memcached",
        "see its log for the addresses: restrict access to the port",
    ),
    "web-password": Meaning(
        "because they sent a wrong password to the web port",
        "see its log for the addresses: restrict access to the web port if you do not know them",
    ),
}
LINKS: Final = {
    "cluster-secret": Meaning(
        "because the other side did not prove the cluster's secret",
        "see its log for the addresses: give all nodes of this cluster the same "
        "cluster-secret-file (docs/security.md), and block others from the bus port",
    ),
    "tls": Meaning(
        "in the TLS handshake",
        "see its log for the addresses and reasons: tls-cluster must be the same on all nodes, "
        "and an authority in tls-ca-cert-file must have signed their certificates",
    ),
    "protected-mode": Meaning(
        "because the node has neither a password nor a cluster secret, and they came from "
        "another machine",
        "give it the cluster-secret-file of the others (docs/security.md), or 'protected-mode no' "
        "if only trusted machines reach its bus port",
    ),
    "silence": Meaning(
        "because the other side did not identify itself in time",
        "see its log for the addresses: it is a node without the cluster-secret-file or "
        "tls-cluster of this one, or not a node",
    ),
    "no node": Meaning(
        "because the other side was not a node", "restrict access to the bus port; see its log"
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
        f"a node where the input of a queue is paused accepts no copies of its jobs: disque-trio "
        f"queues resume ends the pause of {names}. Otherwise, "
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
    # Refusals affect producers, so they rank above waiting jobs.
    since = min(each.since for each in refused)
    return attrs.evolve(made, kind="refused", stake=math.inf, since=since)


def _report(
    node: NodeFacts, who: str, counts: dict[str, int], meanings: dict[str, Meaning]
) -> Iterator[Finding]:
    for reason, count in counts.items():
        meaning = meanings.get(reason, Meaning(f"({reason})", "see its log"))
        were = f"{who} was" if count == 1 else f"{who}s were"
        yield warning(
            node.where, f"{count} {were} refused {meaning.why}", f"{meaning.advice}; {RESET}"
        )
