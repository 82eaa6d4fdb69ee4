"""Jobs as a table: `spark.read.format("disque")`.

Reading delivers and changes nothing. There is a task for each node and a row for each copy, so a
job with two holders has two rows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, In, InputPartition
from pyspark.sql.types import StructType

from disque_trio.pipeline.connector.columns import batches
from disque_trio.pipeline.connector.nodes import Nodes, copies
from disque_trio.pipeline.connector.options import STATES, Link, Scan
from disque_trio.pipeline.connector.refusing import sentences


class Node(InputPartition):
    """A task: the copies of one node."""

    def __init__(self, name: str, scan: Scan) -> None:
        super().__init__(name)
        self.scan = scan


class CopiesTable(DataSourceReader):
    """The copies of jobs that options and filters select."""

    def __init__(self, link: Link, scan: Scan, schema: StructType) -> None:
        self._link = link
        self._scan = scan
        self._schema = schema

    @property
    def pushFilters(self) -> "_PushFilters":  # noqa: N802
        """Looks like the default method: Spark refuses sources that override it unless
        spark.sql.python.filterPushdown.enabled is set.
        """
        return _PushFilters(self._push)

    def _push(self, filters: list[Filter]) -> Iterable[Filter]:
        for each in filters:
            if not self._take(each):
                yield each

    def _take(self, condition: Filter) -> bool:
        """Leave a filter to the nodes, if they can do it. A backslash may stand for other bytes."""
        match condition:
            case EqualTo(("queue",), str(name)) if (
                not self._scan.queue and "\\" not in name and name
            ):
                self._scan = attrs.evolve(self._scan, queue=name)
            case EqualTo(("state",), str(state)) if state in self._states():
                self._scan = attrs.evolve(self._scan, states=(state,))
            case In(("state",), states) if left := self._states() & set(states):
                ordered = tuple(state for state in STATES if state in left)
                self._scan = attrs.evolve(self._scan, states=ordered)
            case _:
                return False
        return True

    def _states(self) -> set[str]:
        """Of the jobs that are listed, as the column has them."""
        return set(self._scan.states or STATES) & set(STATES)

    @sentences()
    def partitions(self) -> Sequence[InputPartition]:
        with Nodes(self._link) as nodes:
            return [Node(name, self._scan) for name in nodes.live()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Node), partition
        with sentences(), Nodes(self._link) as nodes:
            scan = partition.scan
            jobs = copies(nodes, partition.value, scan.queue, scan.states)
            yield from batches(jobs, partition.value, self._schema)


class _PushFilters:
    def __init__(self, push: Callable[[list[Filter]], Iterable[Filter]]) -> None:
        self._push = push
        self.__func__ = DataSourceReader.pushFilters  # what Spark looks at

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        return list(self._push(filters))
