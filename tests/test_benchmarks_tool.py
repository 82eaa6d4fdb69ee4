"""The load generator that others wrote: how its process is started and ended."""

import signal
import subprocess
from typing import Any

import pytest

from benchmarks import tool


def test_a_tool_is_ended_when_a_signal_comes_while_it_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[subprocess.Popen[str]] = []
    start = subprocess.Popen

    def interrupted(*words: Any, **more: Any) -> subprocess.Popen[str]:
        begun.append(start(*words, **more))
        signal.raise_signal(signal.SIGINT)
        return begun[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    try:
        with pytest.raises(KeyboardInterrupt):
            tool.run(["sleep", "60"], 60.0)
    finally:
        signal.signal(signal.SIGINT, before)

    assert begun[0].poll() == -signal.SIGKILL
