import io
import os
from pathlib import Path

import pytest

from disque_trio.serving.config_file import ConfigFileError, Loaded, load
from disque_trio.serving.memory_limits import default_maxmemory
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.directives import get
from tests.trees import HOME

EXAMPLE = HOME / "disque.conf"


def from_stdin(text: str | bytes, *options: str) -> Config:
    raw = text if isinstance(text, bytes) else text.encode()
    return load(["-", *options], io.BytesIO(raw)).config


def refusal(text: str | bytes, *options: str) -> ConfigFileError:
    with pytest.raises(ConfigFileError) as caught:
        from_stdin(text, *options)
    return caught.value


def test_nothing_given_means_all_defaults_in_the_working_directory() -> None:
    loaded = load([], io.BytesIO())

    assert loaded == Loaded(Config(dir=os.getcwd(), maxmemory=default_maxmemory()), "")


def test_a_file_is_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "node.conf"
    file.write_text("# a comment\n\n  port 7712  \r\nTIMEOUT 30\n\t# another\nport 7713")

    loaded = load([str(file)], io.BytesIO())

    assert loaded.path == str(file)
    assert loaded.config.port == 7713
    assert loaded.config.timeout_s == 30


def test_the_path_of_the_file_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "node.conf").write_text("port 7712\n")
    monkeypatch.chdir(tmp_path)

    assert load(["node.conf"], io.BytesIO()).path == str(tmp_path / "node.conf")


def test_values_are_quoted_as_in_inline_commands() -> None:
    config = from_stdin(
        b'requirepass "a \\"b\\" \\xff\\n"\n'
        b'logfile ""\n'
        b"syslog-ident 'it\\'s'\n"
        b'pidfile /run/"a b"\n'
    )

    assert config.requirepass == b'a "b" \xff\n'
    assert config.logfile == ""
    assert config.syslog_ident == "it's"
    assert config.pidfile == "/run/a b"


def test_options_of_the_command_line_come_after_the_file() -> None:
    config = from_stdin(
        "port 7712\ntimeout 5\n",
        *("--port", "7713", "--bind", "127.0.0.1", "::1", "--requirepass", "a b", "--logfile", ""),
    )

    assert config.port == 7713
    assert config.timeout_s == 5
    assert config.bind == ("127.0.0.1", "::1")
    assert config.requirepass == b"a b"


def test_options_may_stand_alone() -> None:
    assert load(["--port", "7712"], io.BytesIO()).config.port == 7712


def test_the_port_has_the_short_name_that_clients_give_it() -> None:
    assert load(["-p", "7712"], io.BytesIO()).config.port == 7712
    config = from_stdin("port 7712\n", "--requirepass", "-p", "-p", "7713")
    assert (config.port, config.requirepass) == (7713, b"-p")


@pytest.mark.parametrize("word", ["-c", "-p", "-port"])
def test_other_short_options_are_no_files(word: str) -> None:
    with pytest.raises(ConfigFileError) as error:
        load([word, "disque.conf"], io.BytesIO())

    assert error.value.reason == (
        f"'{word}' is not an option: a directive is --NAME VALUE, such as --port 7712, "
        f"and the file is the first argument (a file of this name is './{word}')"
    )


def test_a_value_that_belongs_to_no_option_is_refused() -> None:
    error = refusal("", "7712", "--port")

    assert error.render() == (
        "\n*** FATAL CONFIG FILE ERROR ***\n'7712' has no directive: write '--directive 7712'\n"
    )


def test_an_error_says_which_line_and_why() -> None:
    error = refusal("port 7711\n\ntimeout soon\n")

    assert (error.number, error.line) == (3, "timeout soon")
    assert error.render() == (
        "\n*** FATAL CONFIG FILE ERROR ***\n"
        "Reading the configuration file, at line 3\n"
        ">>> 'timeout soon'\n"
        "Invalid timeout value: 'soon' is not a whole number from 0 up\n"
    )


def test_an_error_in_an_option_says_that_it_is_of_the_command_line() -> None:
    error = refusal("port 7711\n", "--timeout", "5", "--hz", "often")

    assert (error.number, error.line) == (0, '--hz "often"')
    assert error.render() == (
        "\n*** FATAL CONFIG FILE ERROR ***\n"
        "Reading the command line\n"
        ">>> '--hz \"often\"'\n"
        "Invalid hz value: 'often' is not a whole number\n"
    )


def test_all_mistakes_can_be_had_at_once(tmp_path: Path) -> None:
    more = tmp_path / "more.conf"
    more.write_text("hz often\ntimeout 5\n")
    found: list[ConfigFileError] = []
    lines = f"port seven\ninclude {more}\nmaxclients 20\nnonsense\n".encode()

    config = load(["-", "--loglevel", "loud"], io.BytesIO(lines), found.append).config

    assert [(error.source, error.number) for error in found] == [
        ("", 1),
        (str(more), 1),
        ("", 4),
        ("", 0),
    ]
    assert (config.port, config.timeout_s, config.maxclients) == (7711, 5, 20)


def test_a_line_may_have_1024_bytes() -> None:
    assert from_stdin("pidfile " + "x" * 1016).pidfile == "x" * 1016


def test_a_longer_line_is_refused() -> None:
    assert refusal("pidfile " + "x" * 1017).reason == (
        "The line is longer than 1024 bytes: split or shorten it"
    )


def test_an_open_quote_is_refused() -> None:
    assert refusal('requirepass "abc').reason == (
        "Unbalanced quotes: close each quote, and put a space after it"
    )


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigFileError) as caught:
        load([str(tmp_path / "none.conf")], io.BytesIO())

    assert caught.value.render() == (
        "\n*** FATAL CONFIG FILE ERROR ***\n"
        f"Can't open the configuration file '{tmp_path}/none.conf': No such file or directory\n"
    )


def test_an_included_file_counts_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "more.conf").write_text("port 7712\ntimeout 5\n")

    config = from_stdin(f"port 7711\ninclude {tmp_path}/more.conf\ntimeout 6\n")

    assert (config.port, config.timeout_s) == (7712, 6)


def test_an_included_file_is_looked_for_in_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "more.conf").write_text("port 7712\n")

    assert from_stdin(f"dir {tmp_path}\ninclude more.conf\n").port == 7712


def test_a_file_may_be_included_twice(tmp_path: Path) -> None:
    (tmp_path / "more.conf").write_text("port 7712\n")

    config = from_stdin(f"dir {tmp_path}\ninclude more.conf\nport 1\ninclude more.conf\n")

    assert config.port == 7712


def test_an_error_in_an_included_file_names_it(tmp_path: Path) -> None:
    (tmp_path / "more.conf").write_text("\nnonsense on stilts\n")

    error = refusal("", "--include", f"{tmp_path}/more.conf")

    assert error.render() == (
        "\n*** FATAL CONFIG FILE ERROR ***\n"
        f"Reading the configuration file, at line 2 of {tmp_path}/more.conf\n"
        ">>> 'nonsense on stilts'\n"
        "Bad directive or wrong number of arguments: there is no 'nonsense', remove it\n"
    )


def test_files_that_include_each_other_are_refused(tmp_path: Path) -> None:
    one, two = tmp_path / "one.conf", tmp_path / "two.conf"
    one.write_text(f"include {two}\n")
    two.write_text(f"include {one}\n")

    with pytest.raises(ConfigFileError) as caught:
        load([str(one)], io.BytesIO())

    assert caught.value.source == str(two)
    assert caught.value.reason == (f"'{one}' is already being read: remove one of the includes")


def test_a_missing_include_is_refused_at_its_line(tmp_path: Path) -> None:
    error = refusal(f"port 7711\ninclude {tmp_path}/none.conf\n")

    assert error.number == 2
    assert error.reason == (
        f"Can't open the configuration file '{tmp_path}/none.conf': No such file or directory"
    )


@pytest.mark.parametrize("line", ["include", "include a b", 'include "a\\x00b"'])
def test_an_include_without_a_file_name_is_refused(line: str) -> None:
    assert refusal(line).reason == (
        "Bad directive or wrong number of arguments: 'include' takes one file name"
    )


def test_directories_count_from_the_one_before(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)

    config = from_stdin(f"dir {tmp_path}\ndir a\ndir ./b\n")

    assert config.dir == str(tmp_path / "a" / "b")


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert refusal(f"dir {tmp_path}/none").reason == (
        f"Can't chdir to '{tmp_path}/none': No such file or directory"
    )
    assert refusal(f"dir {tmp_path}/file").reason == (
        f"Can't chdir to '{tmp_path}/file': Not a directory"
    )


def test_commands_are_renamed_one_after_the_other() -> None:
    config = from_stdin(
        'rename-command CONFIG setup\nrename-command setup s\nrename-command DEBUG ""\n'
        "rename-command ping debug\n"
    )

    assert config.renamed_commands == (
        ("config", "setup"),
        ("setup", "s"),
        ("debug", ""),
        ("ping", "debug"),
    )


def test_a_command_that_is_not_there_cannot_be_renamed() -> None:
    error = refusal('rename-command DEBUG ""\nrename-command DEBUG d\n')

    assert error.number == 2
    assert error.reason == "No such command in rename-command: there is no command 'debug'"


def test_a_command_cannot_take_anothers_name() -> None:
    assert refusal("rename-command debug PING\n").reason == (
        "Target command name already exists: choose a name other than 'ping'"
    )


def test_the_example_file_loads_and_says_the_defaults() -> None:
    config = load([str(EXAMPLE)], io.BytesIO()).config

    assert config == Config(dir=os.getcwd(), maxmemory=default_maxmemory())


def test_the_example_file_names_every_directive() -> None:
    text = EXAMPLE.read_text()
    names = [name.decode() for name in get(Config(), b"*")[::2]]
    names.remove("watchdog-period")
    names += [
        *("appendfilename", "cluster-config-file", "include"),
        *("rename-command", "syslog-enabled", "syslog-ident", "cluster-secret"),
        "tls-key-file-pass",
    ]

    missing = [
        name for name in names if f"\n{name} " not in text and f"\n# {name} " not in text
    ]  # fmt: skip

    assert missing == []


@pytest.mark.parametrize("name", ["requirepass", "CLUSTER-SECRET"])
def test_a_bad_line_with_a_secret_is_not_shown(name: str, tmp_path: Path) -> None:
    path = tmp_path / "disque.conf"
    path.write_text(f"{name} hush hush\n")

    with pytest.raises(ConfigFileError) as caught:
        load([str(path)], io.BytesIO())

    assert "hush" not in caught.value.render()
    assert f">>> '{name} (redacted)'" in caught.value.render()
