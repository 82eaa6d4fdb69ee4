import attrs

from disque_trio.sim.model.recorder import Fields, Recorder, digest_of
from disque_trio.tracing.rows import Row


def fields(time: int = 0, kind: str = "serve", cause: str = "") -> Fields:
    return (time, kind, "n1", "D-1", "q", "c1", "", cause, "", 7, 1, 2, (3, 4))


def test_the_observer_gets_each_row() -> None:
    seen: list[Row] = []
    recorder = Recorder(seen.append)

    recorder.add(fields(5))

    assert seen == [
        Row(5, "serve", node="n1", job="D-1", queue="q", client="c1", ref=7, mono=1, wall=2,
            clock=(3, 4))
    ]  # fmt: skip


def test_the_fields_are_those_of_a_row() -> None:
    assert attrs.astuple(Row(*fields()), recurse=False) == fields()


def test_equal_rows_make_equal_digests() -> None:
    one, other = Recorder(None), Recorder(None)
    for time in range(1000):
        one.add(fields(time))
        # Not the same objects, and not interned.
        other.add(fields(int(str(time)), "".join(["ser", "ve"])))

    assert one.digest() == other.digest()


def test_any_difference_makes_another_digest() -> None:
    base = digest_of([Row(*fields())])

    for name in (field.name for field in attrs.fields(Row)):
        row = Row(*fields())
        value = getattr(row, name)
        setattr(row, name, (*value, 0) if name == "clock" else value + type(value)(1))
        assert digest_of([row]) != base


def test_the_order_of_rows_counts() -> None:
    rows = [Row(1, "a"), Row(2, "b")]

    assert digest_of(rows) != digest_of(reversed(rows))


def test_asking_for_the_digest_changes_nothing() -> None:
    asked, unasked = Recorder(None), Recorder(None)
    for time in range(300):
        asked.add(fields(time))
        asked.digest()
        unasked.add(fields(time))

    assert asked.digest() == unasked.digest()


def test_the_digest_can_be_made_of_kept_rows() -> None:
    rows: list[Row] = []
    recorder = Recorder(rows.append)
    for time in range(600):
        recorder.add(fields(time))

    assert digest_of(rows) == recorder.digest()


def test_messages_may_be_kept_from_the_observer_but_not_from_the_digest() -> None:
    seen: list[Row] = []
    recorder, whole = Recorder(seen.append, messages=False), Recorder(None)
    for kind in ("send", "recv", "serve"):
        recorder.add(fields(kind=kind))
        whole.add(fields(kind=kind))

    assert [row.kind for row in seen] == ["serve"]
    assert recorder.digest() == whole.digest()


def test_whoever_watches_a_kind_is_told_of_it() -> None:
    seen: list[Fields] = []
    recorder = Recorder(None, messages=False)
    recorder.watch("send", seen.append)

    recorder.add(fields(kind="recv"))
    recorder.add(fields(kind="send", cause="gotjob"))

    assert seen == [fields(kind="send", cause="gotjob")]


def test_rows_may_be_kept_back_until_they_are_told() -> None:
    seen: list[Row] = []
    recorder, whole = Recorder(seen.append, messages=False), Recorder(None)
    recorder.keep_back()
    for time in range(600):
        for kind in ("send", "serve"):
            recorder.add(fields(time, kind))
            whole.add(fields(time, kind))
    assert seen == []

    recorder.flush()
    recorder.add(fields(600))
    recorder.flush()
    whole.add(fields(600))

    assert [row.time for row in seen] == list(range(601))
    assert recorder.digest() == whole.digest()


def test_whoever_watches_a_kind_is_told_of_it_even_when_rows_are_kept_back() -> None:
    told: list[Row] = []
    seen: list[Fields] = []
    recorder = Recorder(told.append)
    recorder.keep_back()
    recorder.watch("serve", seen.append)

    recorder.add(fields())

    assert seen == [fields()]
    assert told == []
