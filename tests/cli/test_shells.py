"""Completion of command lines by shells."""

import subprocess
import sys
from pathlib import Path

import pytest

from disque_trio.cli import shells


def completed(line: str, script: Path) -> list[str]:
    """What bash offers at the end of a line."""
    script.write_text(shells.bash())
    words = line.split(" ")
    asking = f"""
        source {script}
        COMP_WORDS=({" ".join(map(repr, words))})
        COMP_CWORD={len(words) - 1}
        _disque_trio
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "-uc", asking], capture_output=True, text=True, check=True, cwd=script.parent
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("disque-trio comp", ["completion"]),
        ("disque-trio jobs dr", ["drop"]),
        ("disque-trio queues drop --rea", ["--reason"]),
        ("disque-trio --url=x jobs sh", ["show"]),
        ("disque-trio sim sweep --engine t", ["trio", "tcp"]),
        ("disque-trio worker shop.tasks --loop ", ["asyncio", "trio"]),
        # bash splits words at =, and zsh does not.
        ("disque-trio worker --loop =", ["asyncio", "trio"]),
        ("disque-trio worker --loop = t", ["trio"]),
        ("disque-trio worker --burst --loop=t", ["--loop=trio"]),
        ("disque-trio sim sweep x.toml --out = fol", ["folder"]),
        ("disque-trio sim sweep x.toml --engine = tcp --out = fol", ["folder"]),
        ("disque-trio worker -c 4 --con", ["--concurrency"]),
        ("disque-trio sim run plan", ["plan.toml"]),
        ("disque-trio sim sweep x.toml --out fol", ["folder"]),
        ("disque-trio aof convert --to fr", ["framed"]),
        ("disque-trio completion ", ["bash", "zsh", "fish"]),
        ("disque-trio up --nodes ", []),
    ],
)
def test_bash_completes_commands_options_values_and_files(
    line: str, offered: list[str], tmp_path: Path
) -> None:
    (tmp_path / "plan.toml").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.txt").touch()

    found = completed(line, tmp_path / "script")
    assert [each for each in found if each != "--help"] == offered


def test_each_option_of_each_command_is_in_each_script() -> None:
    scripts = shells.bash(), shells.zsh(), shells.fish()
    names = {name for place in shells.places() for each in place.options for name in each.names}

    assert len(names) > 80
    for script in scripts[:2]:
        assert {name for name in names if name not in script} == set()
    for name in names:
        assert f" -l {name[2:]} " in scripts[2] or f" -s {name[1:]} " in scripts[2]


def test_the_command_writes_the_script() -> None:
    words = [sys.executable, "-m", "disque_trio", "completion", "fish"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)

    assert done.stdout == shells.fish()
