"""No error of the public API commands a terminal by text that others have written."""

from collections.abc import Callable
from typing import Any, Final

import pytest

import disque_trio.client
import disque_trio.worker
from disque_trio.client.errors import ConnectionFailedError, DisqueError, LostError
from disque_trio.client.refusals import AuthenticationError, RefusedError, refused
from disque_trio.statemachine.base import Failure
from disque_trio.terminal.escapes import printable_lines
from disque_trio.worker import App, JobFailedError, NoResultError, UnknownScheduleError
from disque_trio.worker.enqueue_many import EnqueueManyError
from disque_trio.worker.flows.handles import FlowFailedError, FlowStatus
from disque_trio.worker.requests import not_enqueued

RED: Final = "\x1b[31m\u202e"
Made = Callable[[], BaseException]


def unknown() -> BaseException:
    app: App[None] = App()

    @app.task(name="t")
    def task() -> None: ...

    return app._enqueuer.request(task.call()).unknown(DisqueError(RED))


SPECIAL: Final[dict[str, Made]] = {
    "EnqueueManyError": lambda: EnqueueManyError(RED, []),
    "EnqueueUnknownError": unknown,
    "FlowFailedError": lambda: FlowFailedError(FlowStatus(id=RED, state="failed", members=[])),
    "JobFailedError": lambda: JobFailedError(RED, RED, RED),
    "NoResultError": lambda: NoResultError(RED, None, RED),
    "NotEnqueuedError": lambda: not_enqueued(f"{RED}\n", ValueError(RED)),
    "ConnectionFailedError": lambda: ConnectionFailedError(RED, RED),
    "LostError": lambda: LostError(RED, RED),
    "UnknownScheduleError": lambda: UnknownScheduleError(RED),
}
WITHOUT_OUTSIDE_TEXT: Final = [
    "BatchFailedError",
    "BusyError",
    "InterruptedJobError",
    "NoJobError",
    "OtherLoopError",
    "TooManySchedulesError",
    "UnfitTypeError",
]


def public() -> dict[str, Any]:
    """The error classes that users import."""
    homes: tuple[Any, ...] = (disque_trio.client, disque_trio.worker)
    return {
        name: getattr(home, name)
        for home in homes
        for name in home.__all__
        if name.endswith("Error") and name not in WITHOUT_OUTSIDE_TEXT
    }


@pytest.mark.parametrize("name", public())
def test_an_error_escapes_text_of_others(name: str) -> None:
    kind = public()[name]
    if name in SPECIAL:
        error = SPECIAL[name]()
    elif issubclass(kind, RefusedError):
        error = kind(RED, RED, RED)
    else:
        error = kind(RED)

    assert type(error) is kind
    assert str(error) == printable_lines(str(error))
    assert "\\x1b[31m\\u202e" in str(error) or name == "EnqueueUnknownError"


def test_the_refusal_of_a_connection_escapes_the_words_of_the_node() -> None:
    error = AuthenticationError("NOAUTH", RED, "HELLO")
    error.node = "n1:7711"

    assert str(error).startswith("n1:7711: NOAUTH \\x1b[31m\\u202e. Put the password into the URL")


def test_a_name_ends_no_line_of_a_log() -> None:
    assert "\n" not in str(not_enqueued("a\nb", ValueError("c")))


def test_programs_get_the_reply_of_a_node_as_it_is() -> None:
    error = refused(Failure(f"ERR {RED}".encode()), "ADDJOB")

    assert error.text == RED
