"""`/metrics`: the table of `families` in the text format of Prometheus.

The values are read and made into text in pieces of less than a millisecond, between which the
node's loop goes on. A thread would hold Python's lock for as long as the whole text takes, and the
loop up. While one scrape is answered, others wait for the same text.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import attrs
import trio
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from disque_trio.node import Node
from disque_trio.statemachine.tally import Histogram
from disque_trio.web import census
from disque_trio.web.families import COUNTER, FAMILIES, Facts, Family, Sample
from disque_trio.web.health import is_ready

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
FRESH_S: Final = 0.5
"""A text of this age is good for the next scrape, too, so that scrapes cost a bounded time."""
PIECE: Final = 25
"""Samples that are made into text at once: half a millisecond."""
_HEAD: Final = 2
"""Lines about a family that stand before its samples."""

Values = list[tuple[Family, Histogram | list[Sample]]]


@attrs.define(eq=False)
class Exposition:
    """The metrics of one node."""

    node: Node
    _text: bytes = b""
    _made_at: float = -FRESH_S
    _lock: trio.Lock = attrs.Factory(trio.Lock)

    async def text(self) -> bytes:
        """All metrics now, or of half a second ago."""
        async with self._lock:
            if trio.current_time() - self._made_at >= FRESH_S:
                values = await read(self.node)
                pieces = []
                for piece in _pieces(values):
                    pieces.append(piece)
                    await trio.lowlevel.checkpoint()
                self._text = b"".join(pieces)
                self._made_at = trio.current_time()
        return self._text


async def read(node: Node) -> Values:
    """The values of all families, as they are after the sums have been made."""
    sums = await census.take(node.state)
    facts = Facts(node.state, node.chores.process_vitals(), sums, is_ready(node))
    return [(family, _values(family, facts)) for family in FAMILIES]


def _values(family: Family, facts: Facts) -> Histogram | list[Sample]:
    found = family.read(facts)
    if isinstance(found, Histogram):
        return attrs.evolve(found, buckets=list(found.buckets))
    return list(found) if isinstance(found, Iterable) else [((), float(found))]


def text_of(values: Values) -> bytes:
    """The text that Prometheus reads."""
    return b"".join(_pieces(values))


def _pieces(values: Values) -> Iterator[bytes]:
    for family, found in values:
        if isinstance(found, Histogram):
            yield _spelled(family, found)
            continue
        yield _spelled(family, found[:PIECE])
        for start in range(PIECE, len(found), PIECE):
            text = _spelled(family, found[start : start + PIECE])
            yield b"".join(text.splitlines(keepends=True)[_HEAD:])


def _spelled(family: Family, found: Histogram | list[Sample]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Given([(family, found)]))
    text: bytes = generate_latest(registry)
    return text


@attrs.define(eq=False)
class _Given(Collector):
    """What was read already, as a collector."""

    values: Values

    def collect(self) -> Iterator[Metric]:
        """Each family."""
        for family, found in self.values:
            yield (
                _histogram(family, found) if isinstance(found, Histogram) else _plain(family, found)
            )


def _plain(family: Family, samples: list[Sample]) -> Metric:
    kind = CounterMetricFamily if family.kind == COUNTER else GaugeMetricFamily
    metric = kind(family.name, family.says, labels=family.labels)
    for labels, value in samples:
        metric.add_metric(labels, value)
    return metric


def _histogram(family: Family, found: Histogram) -> Metric:
    buckets: list[tuple[str, float]] = []
    total = 0
    for number, count in enumerate(found.buckets):
        total += count
        is_last = number == len(found.buckets) - 1
        buckets.append(("+Inf" if is_last else repr((1 << number) / 1000), total))
    return HistogramMetricFamily(family.name, family.says, buckets, found.sum / 1000)
