"""Traces that a later version has written."""

from disque_trio.tracing.jsonlines import line_of, rows_of


def test_what_a_later_version_writes_is_kept_and_passed_on() -> None:
    later = b'{"time":1,"kind":"comet","job":"D-1","colour":"red","moons":[1,2]}\n'

    (row,) = rows_of([later])

    assert (row.kind, row.job) == ("comet", "D-1")
    assert line_of(row) == later
