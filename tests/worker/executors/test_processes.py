"""Functions of jobs in processes, on Trio and on asyncio."""

import contextlib
import math
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from disque_trio.worker.describing import describe
from disque_trio.worker.executors import processes
from disque_trio.worker.executors.frames import NotNamedError, RemoteError
from disque_trio.worker.executors.processes import ProcessExecutor, WorkerDiedError
from tests.worker import runs
from tests.worker.executors import work
from tests.worker.executors.runs import a_run, told
from tests.worker.playing import KINDS

pytestmark = pytest.mark.parametrize("kind", KINDS)


def with_pool(kind: str, story: Callable[[Callable[..., Any]], Awaitable[None]]) -> None:
    """Tell a story with a pool of one process."""

    async def opened() -> None:
        async with ProcessExecutor(1) as pool:

            async def run(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
                return await pool.run(fn, args, kwargs, a_run())

            await story(run)

    told(kind, opened)


async def says(path: Path, text: str) -> None:
    while not path.exists() or path.read_text() != text:
        await anyio.sleep(0.01)


async def ended(pid: int) -> None:
    """Wait until it has ended, with each of its threads, whether or not its parent knows."""
    proc = Path(f"/proc/{pid}")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it is gone meanwhile
        while is_alive(pid) and (
            proc.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z"
            or len(list(proc.joinpath("task").iterdir())) > 1
        ):
            await anyio.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_signal_to_the_process_group_of_the_worker_does_not_reach_its_jobs(kind: str) -> None:
    async def story(run: Callable[..., Any]) -> None:
        assert os.getpgid(await run(work.pid)) != os.getpgid(0)

    with_pool(kind, story)


def test_functions_run_in_one_process_after_another(kind: str) -> None:
    pids = []

    async def story(run: Callable[..., Any]) -> None:
        assert await run(work.add, 1, right=2) == 3
        assert await run(work.seven.__wrapped__) == 7
        pids.extend([await run(work.pid), await run(work.pid)])

    with_pool(kind, story)
    assert pids[0] == pids[1] != os.getpid()
    assert not is_alive(pids[0])


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Path]:
    """A file with the number of the process that was left behind, which is ended."""
    path = tmp_path / "left"
    yield path
    os.kill(int(path.read_text()), signal.SIGKILL)


def test_a_process_that_has_died_frees_its_place_whatever_it_has_left_behind(
    kind: str, left: Path
) -> None:
    async def story(run: Callable[..., Any]) -> None:
        with anyio.fail_after(30), pytest.raises(WorkerDiedError, match="SIGKILL"):
            await run(work.die_and_leave_behind, str(left))
        assert await run(work.add, 1) == 1

    with_pool(kind, story)


def test_a_process_that_died_idle_gets_no_job_whatever_it_has_left_behind(
    kind: str, left: Path
) -> None:
    async def story(run: Callable[..., Any]) -> None:
        pid = await run(work.pid)
        await run(work.leave_behind_and_die_idle, str(left))
        await ended(pid)
        assert await run(work.add, 1) == 1

    with_pool(kind, story)


def test_errors_come_back_and_the_process_goes_on(kind: str) -> None:
    async def story(run: Callable[..., Any]) -> None:
        pid = await run(work.pid)
        with pytest.raises(work.OddError, match="1 and 2") as raised:
            await run(work.fail)
        assert raised.value.right == 2
        assert "in fail" in raised.value.__notes__[0]
        with pytest.raises(RemoteError, match="nobody finds me"):
            await run(work.fail_badly)
        with pytest.raises(RemoteError, match="cannot be returned"):
            await run(work.return_badly)
        assert await run(work.pid) == pid

    with_pool(kind, story)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        SystemExit("no"),
        KeyboardInterrupt("no"),
        GeneratorExit("no"),
        work.OwnBaseError("no"),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "no"),
        FileNotFoundError(2, "no", "f"),
    ],
    ids=repr,
)
def test_whatever_a_function_raises_comes_back_and_the_process_goes_on(
    kind: str, error: BaseException
) -> None:
    async def story(run: Callable[..., Any]) -> None:
        pid = await run(work.pid)
        with pytest.raises(type(error)) as raised:
            await run(work.fail_with, error)
        assert str(raised.value) == str(error)
        assert getattr(raised.value, "code", None) == getattr(error, "code", None)
        assert "(executors/work.py:" in describe(raised.value)
        assert await run(work.pid) == pid

    with_pool(kind, story)


def test_what_ends_a_process_that_reads_it_ends_none(kind: str) -> None:
    async def story(run: Callable[..., Any]) -> None:
        pid = await run(work.pid)
        with pytest.raises(SystemExit):
            await run(work.fail_with, work.Unreadable())
        assert await run(work.pid) == pid

    with_pool(kind, story)


def test_a_function_that_forks_is_answered_once_by_its_own_process(kind: str) -> None:
    async def story(run: Callable[..., Any]) -> None:
        pid = await run(work.pid)
        for _ in range(3):
            assert await run(work.fork_and_return) == pid
        assert await run(work.fork_and_leave) == 7
        assert await run(work.fork_and_fail) == 1
        assert await run(work.add, 2) == 2

    with_pool(kind, story)


def test_what_no_other_process_finds_is_refused(kind: str) -> None:
    async def story(run: Callable[..., Any]) -> None:
        with pytest.raises(NotNamedError, match="must be a function of a module"):
            await run(lambda: None)

    with_pool(kind, story)


@pytest.mark.parametrize(("fn", "how"), [(work.die, "SIGKILL"), (work.leave, "exit status 5")])
def test_a_process_that_dies_is_an_error_and_there_is_another_one(
    kind: str, fn: Callable[..., Any], how: str
) -> None:
    async def story(run: Callable[..., Any]) -> None:
        with pytest.raises(WorkerDiedError, match=how):
            await run(fn)
        assert await run(work.add, 1) == 1

    with_pool(kind, story)


def test_a_process_that_died_while_it_was_idle_fails_no_job(kind: str) -> None:
    async def story(run: Callable[..., Any]) -> None:
        pid = await run(work.pid)
        os.kill(pid, signal.SIGKILL)
        await ended(pid)
        assert await run(work.add, 1) == 1

    with_pool(kind, story)


@pytest.mark.parametrize(
    ("fn", "patience_s", "last"), [(work.linger, 60, "ended"), (work.defy, 0.2, "begun")]
)
def test_a_run_that_is_cancelled_ends_its_process(
    kind: str,
    fn: Callable[..., Any],
    patience_s: float,
    last: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "TERM_S", patience_s)
    path = tmp_path / "said"

    async def story(run: Callable[..., Any]) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, fn, str(path))
            await says(path, "begun")
            tasks.cancel_scope.cancel()
        assert path.read_text() == last
        assert await run(work.add, 1) == 1

    with_pool(kind, story)


def test_processes_do_not_outlive_a_worker_that_is_killed(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "said"
    script = (
        "import sys, anyio\n"
        "from tests.worker.executors import work\n"
        "from tests.worker.executors.runs import a_run\n"
        "from disque_trio.worker.executors.processes import ProcessExecutor\n"
        "async def main():\n"
        "    pool = ProcessExecutor(1)\n"
        f"    await pool.run(work.linger, ({str(path)!r},), {{}}, a_run())\n"
        f"anyio.run(main, backend={kind!r})\n"
    )

    async def story() -> None:
        async with await anyio.open_process(
            [sys.executable, "-c", script], stdin=None, stdout=None, stderr=None
        ) as process:
            await says(path, "begun")
            process.kill()
        await says(path, "ended")

    told(kind, story)


def test_the_time_limit_of_a_run_begins_with_its_function(kind: str) -> None:
    driver = runs.Driver()

    async def story() -> None:
        async with ProcessExecutor(1) as pool:
            for _ in range(2):
                run = runs.run_of(b"", driver=driver)
                run.limit(40)
                await pool.run(work.pid, (), {}, run)
        assert driver.limits == [40, math.inf, 40, 40]  # the second one waits for nothing

    told(kind, story)


def test_a_function_runs_with_its_own_decorators_and_without_that_of_its_task(kind: str) -> None:
    async def story(run: Callable[..., Any]) -> None:
        assert await run(work.eight.fn) == 16
        assert await run(work.plain_seven) == 7

    with_pool(kind, story)
