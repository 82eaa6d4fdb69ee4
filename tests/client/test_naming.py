"""What connections are called."""

import os
import socket
import sys

import pytest

from disque_trio.client.naming import as_one_word, process_name


@pytest.mark.parametrize(
    ("argv", "program"),
    [
        (["/srv/shop/load.py", "--fast"], "load.py"),
        (["/usr/bin/gunicorn", "shop:wsgi"], "gunicorn"),
        (["/srv/lib/shop/__main__.py"], "shop"),
        (["/usr/bin/disque-trio", "doctor", "-p", "7711"], "disque-trio-doctor"),
        (["/srv/lib/disque_trio/__main__.py", "queues", "list"], "disque-trio-queues"),
        (["/usr/bin/disque-trio", "--version"], "disque-trio"),
        (["-c", "doctor"], "python"),
        ([""], "python"),
        ([], "python"),
    ],
)
def test_a_process_is_named_by_program_host_and_id(
    monkeypatch: pytest.MonkeyPatch, argv: list[str], program: str
) -> None:
    monkeypatch.setattr(sys, "argv", argv)

    assert process_name() == f"{program}@{socket.gethostname()}:{os.getpid()}"


def test_a_long_program_is_cut_not_host_and_id() -> None:
    name = process_name("x" * 300)

    assert name == f"{'x' * 64}@{socket.gethostname()}:{os.getpid()}"


@pytest.mark.parametrize(
    ("name", "word"),
    [("my shop", b"my_shop"), ("caf\u00e9", b"caf_"), ("a\nb", b"a_b"), ("a@b:1", b"a@b:1")],
)
def test_a_name_becomes_one_word(name: str, word: bytes) -> None:
    assert as_one_word(name) == word
