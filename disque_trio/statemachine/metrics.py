"""INFO's instantaneous metrics, refused bus input, and CONFIG RESETSTAT (original 2.11, 2.13).

Counters are sampled at the end of a batch if a tenth of a second is over, not by a timer, so an
idle node is not woken. Missed samples repeat the current counters, which means no growth.

Owns the `Sampler`, and `NodeState.stats` by replacing it whole.
"""

from typing import Final

from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.stats import Stats

PERIOD: Final[Millis] = 100


def sample(node: NodeState) -> None:
    """Sample the counters, if the current tenth of a second is over.

    All growth counts for the tenth of a second that began at the last sample: later input would
    have caused a sample, except that of the current batch.
    """
    sampler = node.stats.sampler
    over = (node.mono - sampler.last_time) // PERIOD
    if not over:
        return
    now = (node.stats.commands_processed, received(node), sent(node))
    samples = sampler.samples
    samples.append(now)
    if over > 1:
        samples.extend([now] * min(over - 1, len(samples)))
    sampler.last_time += over * PERIOD


def rates(node: NodeState) -> tuple[float, ...]:
    """Commands, bytes received and bytes sent per second, averaged over the samples kept."""
    samples = node.stats.sampler.samples
    seconds = PERIOD * (len(samples) - 1) / 1000
    return tuple(
        (last - first) / seconds for first, last in zip(samples[0], samples[-1], strict=True)
    )


def count_refused(node: NodeState, reason: str, times: int) -> None:
    """Count bus input that was dropped."""
    refused = node.stats.frames_refused
    refused[reason] = refused.get(reason, 0) + times


def count_turned_away(node: NodeState, reason: str, *, is_link: bool = False) -> None:
    """Count a client, or a link of the bus, that was not admitted."""
    counts = node.stats.links_refused if is_link else node.stats.connections_rejected
    counts[reason] = counts.get(reason, 0) + 1


def received(node: NodeState) -> int:
    """Bytes that clients have sent."""
    return node.facts.traffic.received - node.stats.received_before


def sent(node: NodeState) -> int:
    """Bytes that were sent to clients."""
    return node.facts.traffic.sent - node.stats.sent_before


def reset(node: NodeState) -> None:
    """Reset all counters, but not the start time."""
    traffic = node.facts.traffic
    node.stats = Stats(
        started=node.stats.started,
        received_before=traffic.received,
        sent_before=traffic.sent,
    )
