"""`disque-trio completion SHELL`: a script by which a shell completes command lines.

The script has all words in it, so a TAB starts no Python. It is made from the records of options.
"""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Final

import attrs

from disque_trio.cli.frame import run
from disque_trio.programs import COMMANDS
from disque_trio.statemachine.directives import BY_NAME
from disque_trio.terminal.options import (
    FILE,
    Command,
    Family,
    Kind,
    Option,
    Program,
    argument,
    one_of,
    options_of,
)
from disque_trio.terminal.output import say_lines

_FILES: Final = ("FILE", "OUT", "PLAN.json", "OUT.html", "SOCKET")
_BASH: Final = """\
_disque_trio() {
    local at="" word previous="${COMP_WORDS[COMP_CWORD-1]}" current="${COMP_WORDS[COMP_CWORD]}"
    for word in "${COMP_WORDS[@]:1:$((COMP_CWORD-1))}"; do
        case "$at $word" in
            PATHS) at="${at:+$at }$word" ;;
        esac
    done
    local prefix=""
    case "$previous $current" in
        "= "*) previous="${COMP_WORDS[COMP_CWORD-2]}" ;;
        *" =") current="" ;;
        *" --"*=*) previous="${current%%=*}" prefix="${current%%=*}=" current="${current#*=}" ;;
    esac
    COMPREPLY=()
    case "$at $previous" in
VALUES
    esac
    case "$at" in
PLACES
    esac
}
complete -F _disque_trio disque-trio
"""
_FISH: Final = """\
function __disque_trio_at
    set -l at
    for word in (commandline -opc)[2..]
        if contains -- "$at $word" PATHS
            set at (string trim -- "$at $word")
        end
    end
    test "$at" = "$argv[1]"
end
complete -c disque-trio -f
"""


@attrs.frozen
class Place:
    """What may follow some words of a command line."""

    path: str
    """The words: "jobs dead"; empty at the beginning."""
    words: dict[str, str]
    """Subcommands or values, with the help."""
    options: Sequence[Option] = ()
    files: str = ""
    """`-f` where a file may stand, and `-d` for a folder."""


def places() -> Iterator[Place]:
    """All places of all commands that are installed."""
    programs = dict(_programs())
    server = {"server": "Run one node"}
    yield Place("", {**server, **{name: _line(each.about) for name, each in programs.items()}})
    directives = [Option(names=(f"--{name}",), kind=FILE, about="") for name in BY_NAME]
    yield Place("server", {}, directives, files="-f")
    for name, program in programs.items():
        yield from _places(name, program)


def _programs() -> Iterator[tuple[str, Program]]:
    for name, program in COMMANDS.items():
        if name != "server":  # its options are the directives of a node
            with suppress(ImportError):  # an extra is not installed
                yield name, import_module(program.module).PROGRAM


def _places(path: str, program: Program) -> Iterator[Place]:
    if isinstance(program, Family):
        yield Place(path, {name: _line(each.about) for name, each in program.commands.items()})
        for name, each in program.commands.items():
            yield from _places(f"{path} {name}", each)
        return
    options = [each for _, each in options_of(program.record)]
    kinds = [each.kind for each in options if not each.names]
    words = {word: "" for kind in kinds for word in kind.words}
    named = [each for each in options if each.names]
    yield Place(path, words, named, "".join(map(_files, kinds))[:2])


def _line(about: str) -> str:
    return " ".join(about.partition(". ")[0].rstrip(".").split())


def _files(kind: Kind) -> str:
    """What compgen is asked for: folders, files, or neither."""
    return "-d" if kind.metavar == "DIR" else "-f" if kind.metavar in _FILES else ""


def _key(path: str) -> str:
    """The path as the scripts see it when its last word has come."""
    return f'"{path}"' if " " in path else f'" {path}"'


def bash() -> str:
    """The script for bash."""
    every = list(places())
    values, cases = [], []
    for place in every:
        words = [*place.words, *(name for each in place.options for name in each.names), "--help"]
        cases.append(f'        "{place.path}") {_compgen(words, place.files)} ;;')
        for each in place.options:
            if each.constant is None:
                names = "|".join(f'"{place.path} {name}"' for name in each.names)
                reply = _compgen(each.kind.words, _files(each.kind))
                values.append(f"        {names}) {reply}; return ;;")
    paths = "|".join(_key(place.path) for place in every if place.path)
    script = _BASH.replace("PATHS", paths).replace("VALUES", "\n".join(values))
    return script.replace("PLACES", "\n".join(cases))


def _compgen(words: Sequence[str], files: str) -> str:
    listed = shlex.quote(" ".join(words))
    return f'COMPREPLY=($(compgen {files} -P "$prefix" -W {listed} -- "$current"))'


def zsh() -> str:
    """The script for zsh, which reads those of bash."""
    return "autoload -U +X bashcompinit && bashcompinit\n" + bash()


def fish() -> str:
    """The script for fish."""
    every = list(places())
    lines = [_FISH.replace("PATHS", " ".join(_key(place.path) for place in every if place.path))]
    for place in every:
        begin = f"complete -c disque-trio -n '__disque_trio_at \"{place.path}\"'"
        for word, about in place.words.items():
            lines.append(f"{begin} -a {word} -d {_quoted(about)}\n")
        if place.files:
            lines.append(f"{begin} -F\n")
        for each in place.options:
            names = " ".join(_fish_name(name) for name in each.names)
            value = ""
            if each.constant is None:
                words = " ".join(each.kind.words)
                value = " -r -F" if _files(each.kind) else f" -x -a {_quoted(words)}"
            lines.append(f"{begin} {names}{value} -d {_quoted(each.about)}\n")
    return "".join(lines)


def _fish_name(name: str) -> str:
    return f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"


def _quoted(text: str) -> str:
    """As fish quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SHELLS: Final = {"bash": bash, "zsh": zsh, "fish": fish}


@attrs.frozen(kw_only=True)
class Options:
    """The command line, read and checked."""

    shell: str = argument(one_of(*_SHELLS, metavar="SHELL"), "bash, zsh or fish")


def main(argv: Sequence[str]) -> int:
    """Write the script. The exit status."""
    return run("completion", PROGRAM, argv)


def _main(options: Options) -> int:
    say_lines(_SHELLS[options.shell]())
    return 0


PROGRAM: Final = Command(
    record=Options,
    run=_main,
    about="Print a script that completes command lines in a shell.",
    epilog="""\
bash:  source <(disque-trio completion bash)      in ~/.bashrc
zsh:   source <(disque-trio completion zsh)       in ~/.zshrc, after compinit
fish:  disque-trio completion fish | source       in ~/.config/fish/config.fish
""",
)
