"""Numbers of things in sentences."""

from disque_trio.terminal.counting import counted


def test_one_thing_is_in_the_singular() -> None:
    assert counted(1, "run") == "1 run"
    assert counted(0, "run") == "0 runs"
    assert counted(2000, "run") == "2,000 runs"
    assert counted(1, "delivery", "deliveries") == "1 delivery"
    assert counted(2, "delivery", "deliveries") == "2 deliveries"
