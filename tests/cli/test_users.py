"""`disque-trio users`: the file of users."""

import io
import stat
from pathlib import Path

import pytest

from disque_trio.cli.users import main
from disque_trio.statemachine.config import Config
from disque_trio.web.users import accounts


def typed(monkeypatch: pytest.MonkeyPatch, word: str = "open sesame\n") -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(word))


def test_a_user_is_added_and_replaced_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "users"
    typed(monkeypatch)
    assert main(["add", str(path), "ann", "--role", "operator"]) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    ann = accounts(Config(web_users=path.read_bytes()))["ann"]
    assert (ann.role, ann.fits(b"open sesame"), ann.fits(b"x")) == ("operator", True, False)
    assert main(["add", str(path), "ann"]) == 1
    path.chmod(0o640)
    typed(monkeypatch)
    assert main(["add", str(path), "ann", "--replace"]) == 0
    assert accounts(Config(web_users=path.read_bytes()))["ann"].role == "reader"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert main(["remove", str(path), "ann"]) == 0
    assert main(["remove", str(path), "ann"]) == 1
    assert path.read_bytes() == b""
    assert [each.name for each in tmp_path.iterdir()] == ["users"]
    assert "open sesame" not in "".join(capsys.readouterr())


def test_a_token_is_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "users")
    assert main(["token", path, "mailer", "--role", "client"]) == 0
    token = capsys.readouterr().out.strip()

    assert accounts(Config(web_users=Path(path).read_bytes()))["mailer"].fits(token.encode())
    assert main(["list", path]) == 0
    listed = capsys.readouterr().out
    assert ["mailer", "client", "a", "token"] in [each.split() for each in listed.splitlines()]
    assert token not in listed + Path(path).read_text()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["add", "FILE", "a:b"], "name"),
        (["add", "FILE", "ann", "--role", "king"], "reader"),
        (["add", "FILE", "ann"], "8 characters"),
        (["list", "FILE"], "users"),
        (["list", "WRONG"], "line 1"),
        (["add", "NOWHERE", "ann"], "NOWHERE"),
    ],
)
def test_mistakes_are_told(
    words: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    typed(monkeypatch, "short\n" if text == "8 characters" else "open sesame\n")
    (tmp_path / "wrong").write_text("ann:secret\n")
    places = {"FILE": "users", "WRONG": "wrong", "NOWHERE": "NOWHERE/users"}

    assert main([str(tmp_path / places[w]) if w in places else w for w in words]) == 2

    assert text in "".join(capsys.readouterr())
