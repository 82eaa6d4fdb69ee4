from disque_trio.observe.top_k import MOST, TopK


def test_of_very_many_those_with_the_highest_ranks_are_kept() -> None:
    worst = TopK()
    for number in range(10 * MOST):
        worst.offer(f"q{number}", (number * 7919) % (10 * MOST))  # each rank once, in no order

    assert MOST <= len(worst.ranks) <= 2 * MOST
    assert sorted(worst.ranks.values())[-MOST:] == list(range(9 * MOST, 10 * MOST))


def test_a_name_has_its_last_rank_and_may_go() -> None:
    worst = TopK()
    worst.offer("a", 1)
    worst.offer("a", 7)
    worst.offer("b", 2)

    worst.discard("b")
    worst.discard("never there")

    assert worst.ranks == {"a": 7}


def test_low_ranks_come_in_again_when_there_is_room() -> None:
    worst = TopK()
    for number in range(2 * MOST + 1):
        worst.offer(f"q{number}", 100 + number)
    for name in list(worst.ranks):
        worst.discard(name)

    worst.offer("low", 0)

    assert worst.ranks == {"low": 0}
