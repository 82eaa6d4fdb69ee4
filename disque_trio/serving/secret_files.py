"""Secrets in files of their own, neither in the configuration nor on a command line.

Such a file is a systemd credential, a container's secret, or one that only its owner can read. Its
text is the secret, without a line end at the end.
"""

import contextlib
import os
import stat
from collections.abc import Callable
from typing import Any, Final

import attrs

from disque_trio.statemachine.config import Config
from disque_trio.statemachine.directives import BY_NAME, SECRET_FILES, SECRETS
from disque_trio.statemachine.values import decode

LONGEST: Final = 4096
"""Bytes of such a file."""
_LONGER: Final = {"web-users-file": 32 << 10}


class SecretFileError(Exception):
    """A secret cannot be read: of which directive, from which file, and why."""


def with_secrets(config: Config, warn: Callable[[str], None]) -> Config:
    """The configuration with the secrets of its files. Raises `SecretFileError`."""
    changes: dict[str, Any] = {}
    for name, field in SECRET_FILES.items():
        path = getattr(config, field)
        if path:
            text = _read(f"{name}-file", path, warn)
            try:
                changes[BY_NAME[name].field] = BY_NAME[name].kind.read([text])
            except ValueError as error:
                raise SecretFileError(f"{name}-file {path}: {error}") from None
    return attrs.evolve(config, **changes)


def _read(directive: str, path: str, warn: Callable[[str], None]) -> str:
    most = _LONGER.get(directive, LONGEST)
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            raw = file.read(most + 1)
    except OSError as error:
        raise SecretFileError(f"{directive} {path}: {error.strerror}") from None
    text = _stripped(raw)
    if not text:
        raise SecretFileError(f"{directive} {path} is empty: write the secret into it")
    if len(raw) > most:
        raise SecretFileError(
            f"{directive} {path} has more than {most} bytes: check that it is the secret"
        )
    if is_open(mode):
        warn(f"{directive} {path}: other users of this machine can read it: chmod 600 {path}")
    return decode(text)


def is_open(mode: int) -> bool:
    """Can others than the owner read or change a file of this mode?"""
    return stat.S_ISREG(mode) and bool(mode & 0o066)


def warn_of_open_configuration(path: str, config: Config, warn: Callable[[str], None]) -> None:
    """Warn if others can read a configuration with a secret; call before `with_secrets`."""
    has_secret = any(getattr(config, BY_NAME[name].field) for name in sorted(SECRETS))
    with contextlib.suppress(OSError):
        if path and has_secret and is_open(os.stat(path).st_mode):
            warn(f"{path} contains a secret, and other users can read it: chmod 600 {path}")


def _stripped(raw: bytes) -> bytes:
    return raw.removesuffix(b"\n").removesuffix(b"\r")
