import pytest

from disque_trio.statemachine.redaction import redacted
from disque_trio.tracing.live import TracedMachine
from disque_trio.tracing.rows import Row
from tests.rig import Rig


@pytest.mark.parametrize(
    ("name", "request_", "shown"),
    [
        ("auth", "AUTH hush", "AUTH (redacted)"),
        ("auth", "login hush", "login (redacted)"),
        ("hello", "HELLO", "HELLO"),
        ("hello", "HELLO 3 SETNAME me", "HELLO 3 SETNAME me"),
        (
            "hello",
            "HELLO 3 auth me hush SETNAME me",
            "HELLO 3 auth (redacted) (redacted) SETNAME me",
        ),
        ("hello", "HELLO 3 AUTH hush", "HELLO 3 AUTH (redacted)"),
        ("hello", "HELLO 3 AUTH", "HELLO 3 AUTH"),
        ("config", "CONFIG SET RequirePass hush", "CONFIG SET RequirePass (redacted)"),
        ("config", "CONFIG SET timeout 5", "CONFIG SET timeout 5"),
        ("config", "CONFIG GET requirepass", "CONFIG GET requirepass"),
        ("addjob", "ADDJOB auth hush 0", "ADDJOB auth hush 0"),
    ],
)
def test_passwords_are_hidden_and_nothing_else(name: str, request_: str, shown: str) -> None:
    assert [*redacted(name, request_.encode().split())] == shown.encode().split()


def test_monitors_are_shown_no_passwords() -> None:
    rig = Rig()
    watcher = rig.connect()
    rig.request("MONITOR", client=watcher)

    rig.request("CONFIG", "SET", "requirepass", "hush")
    rig.request("AUTH", "hush")

    seen = repr(rig.replies(watcher))
    assert seen.count("(redacted)") == 2
    assert "hush" not in seen


def test_a_trace_tells_no_passwords() -> None:
    rig = Rig(kind=TracedMachine)
    assert isinstance(rig.machine, TracedMachine)
    rows: list[Row] = []
    rig.machine.trace(rows.extend, "fresh")

    rig.request("CONFIG", "SET", "requirepass", "hush")
    rig.request("AUTH", "hush")
    rig.request("HELLO", "3", "AUTH", "default", "hush")
    rig.request("ADDJOB", "q", "body", "0")

    assert "body" in repr(rows)
    assert "hush" not in repr(rows)


def test_the_slowlog_keeps_no_passwords() -> None:
    rig = Rig()
    row = rig.machine.request(rig.client, [b"CONFIG", b"SET", b"requirepass", b"hush"], rig.now)
    assert row is not None

    rig.machine.timed(row, [b"CONFIG", b"SET", b"requirepass", b"hush"], 20_000_000)

    [entry] = rig.node.slowlog.entries
    assert entry.args == [b"CONFIG", b"SET", b"requirepass", b"(redacted)"]
