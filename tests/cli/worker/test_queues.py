"""From `-Q` to the queues of the engine and their order."""

import pytest

from disque_trio.cli.worker import PROGRAM
from disque_trio.cli.worker.running import settings_of
from disque_trio.terminal.options import UsageError, parse
from disque_trio.worker import App

app = App("disque://127.0.0.1:1")
for _name in ("mail", "video", "a=1"):
    app.task(name=_name, queue=_name)(print)


def known(*argv: str) -> tuple[bool, list[tuple[str, int]]]:
    """Is the order strict, and which weights have the queues?"""
    settings = settings_of(app, parse(PROGRAM, "", ["shop", *argv], {}).options)
    return settings.is_strict, [(each.name.decode(), each.weight) for each in settings.queues]


def test_queues_that_are_named_have_that_order() -> None:
    assert known("-Q", "video,mail,video") == (True, [("video", 1), ("mail", 1)])


@pytest.mark.parametrize("argv", [(), ("-Q", "!video")])
def test_queues_that_are_not_named_take_turns(argv: tuple[str, ...]) -> None:
    is_strict, queues = known(*argv)
    assert not is_strict
    assert {weight for _, weight in queues} == {1}


def test_weights_are_shares() -> None:
    assert known("-Q", "video=3,mail") == (False, [("video", 3), ("mail", 1)])


def test_a_name_with_an_equals_sign_is_the_queue_if_a_task_has_that() -> None:
    assert known("-Q", "a=1,b=x") == (True, [("a=1", 1), ("b=x", 1)])


@pytest.mark.parametrize("weight", ["0", "101"])
def test_a_weight_out_of_bounds_is_refused(weight: str) -> None:
    with pytest.raises(UsageError, match=f"-Q mail={weight}: a weight must be from 1 to 100"):
        known("-Q", f"mail={weight}")


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        (("-Q", "video,mail"), ["video", "disque-trio.looks.mail", "mail"]),
        (("-Q", "!mail"), ["a=1", "video"]),
        ((), ["a=1", "disque-trio.looks.mail", "mail", "video"]),
    ],
)
def test_a_queue_with_limits_has_one_of_its_flows_and_batches_before_it(
    monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...], names: list[str]
) -> None:
    monkeypatch.setattr(app, "limits", {})
    app.limit("mail", concurrency=1)

    assert [name for name, _ in known(*argv)[1]] == names
