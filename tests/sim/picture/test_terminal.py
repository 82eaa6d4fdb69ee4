from disque_trio.sim.checkers.verdict import judge
from disque_trio.sim.picture import terminal
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row
from tests.sim.picture import examples


def split_brain(**options: int) -> list[str]:
    plan, rows = examples.cut_plan(), examples.split_brain()
    the_judge = judge(plan)
    for row in rows:
        the_judge.see(row)
    return terminal.lines(plan, rows, the_judge.finish(), **options)  # type: ignore[arg-type]


def words(lines: list[str]) -> list[str]:
    return [" ".join(line.split()[1:]) for line in lines]


def test_a_run_is_shown_line_by_line() -> None:
    lines = terminal.lines(examples.plan(), examples.calm(), None)

    assert words(lines) == [
        "1.000000 p1 add.invoke J1 at n1 [...]",
        "1.001600 n2 + J1 repljob [.h.]",
        "1.002250 n1 + J1 add [wh.]",
        "1.002250 n1 +q J1 first [Qh.]",
        "1.003050 p1 add.ok J1 at n1 [Qh.]",
        "1.303050 n1 serve J1 to c1 [hh.]",
        "1.303650 c1 deliver J1 from n1 [hh.]",
        "1.328650 c1 ack.invoke J1 at n1 [hh.]",
        "1.329150 n1 ack J1 ackjob [Kh.]",
        "1.329550 c1 ack.ok J1 at n1 [Kh.]",
        "1.330050 n2 ack J1 setack [Kk.]",
        "1.331550 n2 - J1 deljob [K..]",
        "1.331550 n1 - J1 collected [...]",
        "2.331550 end",
    ]


def test_a_duplicate_is_shown_with_its_cause() -> None:
    deliveries = [line for line in split_brain() if "deliver " in line]

    assert len(deliveries) == 2
    assert deliveries[1].endswith("delivery 2: D2")


def test_the_links_of_a_cut_are_one_line() -> None:
    cuts = [line for line in words(split_brain()) if " cut " in line or " heal " in line]

    assert cuts == ["1.285000 cut n1 | n2 n3", "4.491600 heal n1 | n2 n3"]


def test_a_lost_message_is_shown() -> None:
    assert "1.407000 n1 lost J1 SETACK to n2 [Khh]" in words(split_brain())


def test_the_last_lines_can_be_shown_alone() -> None:
    assert split_brain(last=3) == split_brain()[-3:]


def test_one_job_can_be_shown_alone_with_the_faults() -> None:
    rows = [
        *examples.split_brain(),
        Row(8_000_000, "hold", "n1", examples.job_id(2), cause="add"),
    ]

    lines = terminal.lines(examples.plan(), rows, None, job=examples.job_id(2))

    assert words(lines) == [
        "1.285000 cut n1 | n2 n3",
        "4.491600 heal n1 | n2 n3",
        "5.896500 chaos.end",
        "6.896500 end",
        "8.000000 n1 + J2 add [w..]",
    ]


def test_a_node_that_is_down_is_marked() -> None:
    rows = [
        *examples.crash()[:7],
        Row(2_000_000, "hold", "n2", examples.job_id(1), cause="repljob"),
    ]

    assert terminal.lines(examples.plan(), rows, None)[-1].endswith("[xh.]")


def test_columns_stand_below_each_other() -> None:
    assert len({line.index("[") for line in split_brain() if "[" in line}) == 1


def test_a_large_cluster_has_no_columns() -> None:
    lines = terminal.lines(Plan(scenario="s", seed=0, nodes=100), examples.calm(), None)

    assert not any("[" in line for line in lines)


def test_nothing_happened_is_no_lines() -> None:
    assert terminal.lines(examples.plan(), [], None) == []
