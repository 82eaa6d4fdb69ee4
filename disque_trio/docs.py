"""The generated parts of docs/: `python -m disque_trio.docs docs` writes them.

Tests compare them with the tables in the code, so neither changes without the other.
"""

import sys
from pathlib import Path
from typing import Final

from disque_trio import manual
from disque_trio.cli.usage import show
from disque_trio.cli.worker.options import Options
from disque_trio.statemachine.base import STATE_NAMES
from disque_trio.statemachine.commands.rows import Command
from disque_trio.statemachine.commands.table import ROWS
from disque_trio.statemachine.commands.usage import forms, is_optional
from disque_trio.statemachine.job_states import ABSENT, MEANINGS, TRANSITIONS
from disque_trio.terminal.options import options_of
from disque_trio.worker.options import GIVEN_TO, Definition, rows
from disque_trio.worker.options import Options as JobSettings

_HEADER: Final = """\
# Commands

This page is the reference of all commands of a node: arguments, options, replies and examples.
`make docs` writes it from the command table (`disque_trio/statemachine/commands/table.py`) and the
pages in `disque_trio/manual/`.

A request is a RESP array of bulk strings, or a line of words separated by spaces. In the usage
lines, upper-case words are keywords, in upper or lower case. Lower-case words stand for a
value, brackets enclose optional parts, and `a|b` is a choice. Options may come in any order. Queue
names and bodies are any bytes. Numbers are signed 64-bit integers. *Ours* marks options that the
original Disque server does not have. For these, an empty word in place of a number is an error; for
all others it is 0.

| reply | meaning |
|---|---|
| `+text` | a simple string: `+OK`, a job's id, a pause state |
| `:n` | a number: a count, or seconds |
| `$...` | a bulk string; `$-1` is null: no such job |
| `*...` | an array; `*-1` is null: no job in time, no such queue |
| `-CODE text` | an error |

| code | when |
|---|---|
| `ERR` | the request is invalid |
| `BADID` | a word is not a job id; the command has no effect on the other jobs either |
| `NOJOB` | WORKING on a job that this node does not know |
| `ACKED` | WORKING on a job that is acknowledged |
| `TOOLATE` | WORKING on a job that is past half of its TTL |
| `DEAD` | WORKING on a job that is dead |
| `LOST` | WORKING with a token, on a job that was returned, or delivered to another worker, since |
| `BADTOKEN` | the text after the `@` of an id is not a token of GETJOB WITHMETA; nothing is done |
| `NOREPL` | ADDJOB: too few replicas in time, or it is unknown whether the key is free |
| `DUPLICATE` | ADDJOB with IFEXISTS reject: a job has the key; its id and state follow |
| `TIMEOUT` | SHOW KEY or CANCEL KEY: other nodes did not answer within five seconds |
| `MAXLEN`, `PAUSED` | ADDJOB to a queue that is too long, or paused for input |
| `LEAVING` | GETJOB would wait, but the node is about to leave the cluster |
| `NOAUTH` | a password is set, and the connection has not authenticated (AUTH) |
| `DENIED` | the node has no password and serves its own machine only; the text says what to do |
| `OOM` | there is no memory for ADDJOB, ENQUEUE or NACK; other commands still work |
| `MISCONF` | the append-only file cannot be written, so commands that change jobs are refused |
| `LOADING` | the node is loading its append-only file |
| `DUPLICATEID` | another process runs with the ID of this node; the text says what to do |
| `NOPROTO` | HELLO for a version of the protocol that does not exist |
| `WRONGPASS` | AUTH for another user than `default`, which is the only one |
| `EXECABORT` | EXEC after MULTI: there are no transactions; nothing since MULTI was executed |

A job is an array of queue, id and body; with WITHCOUNTERS `nacks` and `additional-deliveries`
follow, each with its number. QUIT, which is not in the table, is answered with `+OK` at any time,
and closes the connection. The numbers of words below include the command's name. In the examples
`$1` is the id of the job that was added last, and `…` any text.
"""


def commands_page() -> str:
    """docs/commands.md."""
    lines = ["", "| command | what it does |", "|---|---|"]
    lines += [f"| [{_title(row)}](#{row.name}) | {row.summary} |" for row in ROWS]
    return _HEADER + "\n".join(lines) + "\n" + "".join(map(_section, ROWS))


def _section(row: Command) -> str:
    usage = "\n".join(f"    {form}".rstrip() for form in _forms(row))
    flags = ", ".join((flag.name or "").lower() for flag in row.flags)
    return (
        f"\n## {_title(row)}\n\n{row.summary}\n\n{usage}\n\n{manual.text(row.name)}\n"
        f"Words: {_words(row)}. Flags: {flags}.\n"
    )


def _title(row: Command) -> str:
    return row.name.upper()


def _forms(row: Command) -> list[str]:
    """Each way to call it on a line of its own."""
    rests = [show([form]) for form in forms(row.usage)]
    if is_optional(row.usage):
        rests.insert(0, "")
    return [f"{_title(row)} {rest}" for rest in rests]


def _words(row: Command) -> str:
    if row.arity == 0:
        return "any number"
    return str(row.arity) if row.arity > 0 else f"at least {-row.arity}"


def settings_table(record: type) -> list[str]:
    """The options of a command, as a table."""
    lines = ["| option | value | default | meaning |", "|---|---|---|---|"]
    for _, each in options_of(record):
        if each.names:
            names = ", ".join(f"`{name}`" for name in each.names)
            value = "" if each.constant is not None else each.kind.expected
            lines.append(f"| {names} | {value} | {each.shown} | {each.about} |")
    return lines


def task_options() -> list[str]:
    """The options of tasks and jobs, as a table."""
    lines = ["| option | of | default | meaning |", "|---|---|---|---|"]
    for name, row in {**rows(JobSettings), **rows(Definition)}.items():
        of = ", ".join(
            level for level, options in GIVEN_TO.items() if name in options.__annotations__
        )
        lines.append(f"| `{name}` | {of} | {row.shown} | {row.meaning} |")
    return lines


def job_states() -> list[str]:
    """The states of a job, and every way from one to another, as two tables."""
    names = {number: name.decode() for number, name in enumerate(STATE_NAMES)} | {ABSENT: "-"}
    lines = ["| state | the job is |", "|---|---|"]
    lines += [f"| {names[state]} | {meaning} |" for state, meaning in MEANINGS.items()]
    lines += ["", "| from | to | when | by |", "|---|---|---|---|"]
    for way in TRANSITIONS:
        lines.append(f"| {names[way.before]} | {names[way.after]} | {way.events} | `{way.by}` |")
    return lines


def main(folder: Path) -> None:
    """Write the page of commands, and the tables between their marks in other pages."""
    (folder / "commands.md").write_text(commands_page())
    for name, mark, lines in TABLES:
        page = folder / name
        begin, end = f"<!-- {mark}, by `make docs` -->\n\n", f"\n\n<!-- end of {mark} -->"
        before, _, rest = page.read_text().partition(begin)
        after = rest.partition(end)[2]
        page.write_text(before + begin + "\n".join(lines) + end + after)


TABLES: Final = (
    ("worker-process.md", "settings", settings_table(Options)),
    ("worker.md", "options of tasks and jobs", task_options()),
    ("design.md", "states of a job", job_states()),
)
"""Page, mark and lines of each table in a page that is written by hand."""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
