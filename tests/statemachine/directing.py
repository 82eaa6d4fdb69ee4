"""What the tests of directives have in common."""

from disque_trio.statemachine.config import Config
from disque_trio.statemachine.directives import get


def value_of(config: Config, name: str) -> str:
    [_, value] = get(config, name.encode())
    return value.decode()
