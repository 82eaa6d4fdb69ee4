from disque_trio.sim.model.clock import EPOCH_MS
from disque_trio.sim.picture.strips import Bar, bars, clock_errors, shape
from disque_trio.tracing.rows import Row
from tests.sim.picture import examples

NODES = ["n1", "n2", "n3"]


def labels(*rows: Row, end: int = 9) -> list[tuple[str, int, int, str]]:
    return [(bar.what, bar.start, bar.end, bar.label) for bar in bars(rows, NODES, end)]


def test_the_links_of_a_partition_are_one_bar() -> None:
    example = examples.Example()
    examples.cut(example, 3, ("n1",), ("n2", "n3"))
    examples.cut(example, 4, ("n1",), ("n2", "n3"), "heal")

    assert bars(example.rows, NODES, 9) == [
        Bar("cut", 3, 7, "n1 | n2 n3", ("n1", "n2", "n3"), "cut", is_of_links=True)
    ]


def test_a_cut_that_nobody_heals_lasts_to_the_end() -> None:
    assert labels(Row(3, "cut", "n1", peer="n2")) == [("cut", 3, 9, "n1→n2")]


def test_a_heal_of_everything_ends_all_cuts() -> None:
    rows = (Row(1, "cut", "n1", peer="n2"), Row(2, "cut", "n3", peer="n2"), Row(5, "heal"))

    assert labels(*rows) == [("cut", 1, 5, "n1→n2"), ("cut", 2, 5, "n3→n2")]


def test_links_that_part_no_groups_are_named() -> None:
    assert shape([("n1", "n2"), ("n2", "n1"), ("n1", "n3")], NODES) == "n1↔n2, n1→n3"


def test_a_ring_is_no_partition() -> None:
    four = ["n1", "n2", "n3", "n4"]
    across = [("n1", "n3"), ("n3", "n1"), ("n2", "n4"), ("n4", "n2")]

    assert shape(across, four) == "n1↔n3, n2↔n4"


def test_many_nodes_are_named_by_their_range() -> None:
    many = [f"n{number}" for number in range(1, 13)]
    links = [(one, "n12") for one in many[:-1]] + [("n12", one) for one in many[:-1]]

    assert shape(links, many) == "n1–n11 | n12"


def test_a_crash_lasts_until_the_start() -> None:
    rows = (Row(1, "crash", "n2", cause="kill"), Row(4, "start", "n2", cause="empty"))

    assert labels(*rows) == [("crash", 1, 4, "n2 kill")]


def test_the_first_start_is_no_event_but_a_later_one_is() -> None:
    assert labels(Row(-5, "start", "n1", cause="fresh")) == []
    assert labels(Row(5, "start", "n4", cause="fresh")) == [("join", 5, 5, "n4 start fresh")]


def test_a_full_disk_lasts_until_it_has_space_again() -> None:
    rows = (Row(1, "disk.full", "n2", detail="yes"), Row(4, "disk.full", "n2", detail="no"))

    assert labels(*rows) == [("disk.full", 1, 4, "n2 disk.full yes")]


def test_nodes_that_are_paused_together_are_one_bar() -> None:
    rows = (
        Row(1, "pause", "n1"),
        Row(1, "pause", "n3"),
        Row(2, "resume", "n1"),
        Row(2, "resume", "n3"),
    )

    assert labels(*rows) == [("pause", 1, 2, "n1 n3 pause")]


def test_a_delay_lasts_until_it_is_nothing() -> None:
    rows = (
        Row(1, "delay", "n1", peer="n2", detail="500"),
        Row(4, "delay", "n1", peer="n2", detail="0"),
    )

    assert labels(*rows) == [("delay", 1, 4, "n1→n2 +500 ms")]


def test_a_paused_queue_is_one_until_it_is_not() -> None:
    rows = (
        Row(1, "pause-queue", "n1", detail="q all"),
        Row(4, "pause-queue", "n1", detail="q none"),
    )

    assert labels(*rows) == [("pause-queue", 1, 4, "n1 pause-queue q all")]


def test_a_step_of_a_clock_has_no_length() -> None:
    assert labels(Row(4, "clock.step", "n2", detail="2500")) == [
        ("clock.step", 4, 4, "n2 clock.step 2500 ms")
    ]


def reading(time_ms: int, node: str, wall_error: int, mono_error: int = 0) -> Row:
    wall, mono = EPOCH_MS + time_ms + wall_error, 1_000_000 + time_ms + mono_error
    return Row(time_ms * 1000, "recv", node, mono=mono, wall=wall)


def test_true_clocks_are_not_drawn() -> None:
    assert clock_errors([reading(0, "n1", 0), reading(5, "n1", 1)], NODES) == {}


def test_a_step_is_a_step_in_the_curve() -> None:
    rows = [reading(0, "n1", 0), reading(10, "n1", 500), reading(20, "n1", 500)]

    assert clock_errors(rows, NODES) == {"n1": [(0, 0, 0), (10_000, 0, 0), (10_000, 500, 0)]}


def test_drift_is_seen_on_both_clocks() -> None:
    rows = [reading(0, "n2", 0), reading(10_000, "n2", 2, 2)]

    assert clock_errors(rows, NODES) == {"n2": [(0, 0, 0), (10_000_000, 2, 2)]}


def test_without_an_epoch_the_middle_node_has_the_true_time() -> None:
    walls = {"n1": 1000, "n2": 1005, "n3": 4000}
    rows = [Row(0, "recv", node, mono=1, wall=wall) for node, wall in walls.items()]

    assert {node: points[0][1] for node, points in clock_errors(rows, NODES).items()} == {
        "n1": -5,
        "n3": 2995,
    }
