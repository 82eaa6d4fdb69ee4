import pytest

from disque_trio.statemachine.base import OK, Reply
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands.rows import Command, Flag
from disque_trio.statemachine.state import NodeState


def handler(_node: NodeState, _client: Client, _args: list[bytes]) -> Reply:
    return OK


@pytest.mark.parametrize(
    ("arity", "fitting"),
    [(2, [2]), (1, [1]), (-1, [1, 2, 3, 4]), (-3, [3, 4]), (0, [1, 2, 3, 4])],
)
def test_arity_is_a_number_or_a_least_number_or_anything(arity: int, fitting: list[int]) -> None:
    row = Command("name", handler, arity, Flag.FAST, "", "")

    assert [count for count in range(1, 5) if row.takes(count)] == fitting
