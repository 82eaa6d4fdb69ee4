from disque_trio.sim.engines.events import NEVER, Engine


def test_events_happen_in_order_of_time() -> None:
    engine = Engine()
    seen: list[str] = []
    engine.later(20, seen.append, "second")
    engine.later(10, seen.append, "first")

    engine.run(100)

    assert seen == ["first", "second"]
    assert engine.now == 100
    assert engine.steps == 2


def test_events_of_one_moment_happen_in_the_order_of_being_planned() -> None:
    engine = Engine()
    seen: list[int] = []
    for number in range(100):
        engine.at(5, seen.append, number)

    engine.run(5)

    assert seen == list(range(100))


def test_what_is_planned_for_the_past_happens_now() -> None:
    engine = Engine(50)
    seen: list[int] = []

    engine.at(10, lambda _: seen.append(engine.now), None)
    engine.run(50)

    assert seen == [50]


def test_events_plan_events() -> None:
    engine = Engine()
    seen: list[int] = []

    def again(left: int) -> None:
        seen.append(engine.now)
        if left:
            engine.later(10, again, left - 1)

    engine.later(0, again, 3)
    engine.run(25)

    assert seen == [0, 10, 20]
    assert engine.next_time() == 30


def test_one_step_is_one_event() -> None:
    engine = Engine()
    engine.later(10, lambda _: None, None)

    engine.step()

    assert engine.now == 10
    assert engine.next_time() == NEVER


def test_time_may_begin_before_zero() -> None:
    engine = Engine(-100)
    seen: list[int] = []
    engine.later(30, lambda _: seen.append(engine.now), None)

    engine.run(0)

    assert seen == [-70]
