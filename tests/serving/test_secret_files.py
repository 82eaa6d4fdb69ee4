from pathlib import Path

import pytest

from disque_trio.serving.secret_files import (
    LONGEST,
    SecretFileError,
    warn_of_open_configuration,
    with_secrets,
)
from disque_trio.statemachine.config import Config


def secret_file(tmp_path: Path, text: bytes, mode: int = 0o600) -> str:
    path = tmp_path / "secret"
    path.write_bytes(text)
    path.chmod(mode)
    return str(path)


def no_warning(text: str) -> None:
    raise AssertionError(text)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_the_text_of_the_file_is_the_secret(tmp_path: Path, end: bytes) -> None:
    path = secret_file(tmp_path, b" hush \xff" + end)

    config = with_secrets(Config(requirepass_file=path), no_warning)

    assert config.requirepass == b" hush \xff"
    assert config.requirepass_file == path


def test_a_cluster_secret_may_have_a_successor(tmp_path: Path) -> None:
    path = secret_file(tmp_path, b"x" * 32 + b"\n" + b"y" * 32 + b"\n")

    config = with_secrets(Config(cluster_secret_file=path), no_warning)

    assert config.cluster_secret.split(b"\n") == [b"x" * 32, b"y" * 32]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_file_that_others_can_use_is_warned_of(tmp_path: Path, mode: int) -> None:
    warnings: list[str] = []

    with_secrets(Config(requirepass_file=secret_file(tmp_path, b"hush", mode)), warnings.append)

    [warning] = warnings
    assert "requirepass-file" in warning
    assert "chmod 600" in warning
    assert "hush" not in warning


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"x" * 513, "at most 512 bytes"),
        (b"x" * (LONGEST + 1), "has more than"),
    ],
)
def test_a_file_that_holds_no_password_is_refused(tmp_path: Path, text: bytes, reason: str) -> None:
    with pytest.raises(SecretFileError, match=reason) as caught:
        with_secrets(Config(requirepass_file=secret_file(tmp_path, text)), no_warning)

    assert "requirepass-file" in str(caught.value)
    assert "xx" not in str(caught.value)


def test_a_secret_that_can_be_guessed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SecretFileError, match="16 to 512 bytes"):
        with_secrets(Config(cluster_secret_file=secret_file(tmp_path, b"hush")), no_warning)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SecretFileError, match="nowhere: No such file"):
        with_secrets(Config(requirepass_file=str(tmp_path / "nowhere")), no_warning)


@pytest.mark.parametrize(
    ("config", "mode", "count"),
    [
        (Config(requirepass=b"hush"), 0o644, 1),
        (Config(tls_key_file_pass=b"hush", requirepass=b"hush"), 0o640, 1),
        (Config(requirepass=b"hush"), 0o600, 0),
        (Config(), 0o644, 0),
    ],
)
def test_a_configuration_with_a_secret_should_be_the_owners_alone(
    tmp_path: Path, config: Config, mode: int, count: int
) -> None:
    warnings: list[str] = []

    warn_of_open_configuration(secret_file(tmp_path, b"", mode), config, warnings.append)

    assert len(warnings) == count


def test_what_stands_in_no_file_is_not_warned_of() -> None:
    warn_of_open_configuration("", Config(requirepass=b"hush"), no_warning)
