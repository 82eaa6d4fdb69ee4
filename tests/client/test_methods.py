import inspect
from typing import get_args, get_origin

import pytest

from disque_trio.client import BlockingClient, Client, Command, commands

METHODS = [
    name
    for name, made in vars(commands).items()
    if get_origin(getattr(made, "__annotations__", {}).get("return")) is Command
    and not name.startswith("_")
    and name not in {"hello", "ping"}
]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("client", [Client, BlockingClient])
def test_a_client_has_a_method_for_each_command_with_its_parameters_and_text(
    client: type[Client | BlockingClient], name: str
) -> None:
    make, method = getattr(commands, name), getattr(client, name)

    told, asked = inspect.signature(method), inspect.signature(make)

    assert list(told.parameters.values())[1:] == list(asked.parameters.values())
    assert (told.return_annotation,) == get_args(asked.return_annotation)
    assert method.__doc__ == make.__doc__
    assert method.__name__ == name


def test_help_of_a_client_that_is_there_shows_what_its_methods_take() -> None:
    assert list(inspect.signature(BlockingClient().getjob).parameters) == [
        "queues", "count", "timeout", "with_meta", "is_tied", "is_held",
    ]  # fmt: skip
