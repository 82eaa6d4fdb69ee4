"""What the library brings along: who adds jobs starts no server and no event loop."""

from tests.client.test_imports import loaded


def test_the_library_is_imported_without_an_event_loop_and_without_the_server() -> None:
    modules = loaded("from disque_trio.worker import App, current_job, Backoff, Dead")

    assert "disque_trio.worker.app" in modules
    assert not modules & {
        "anyio",
        "trio",
        "asyncio",
        "rich",
        "prompt_toolkit",
        "google_crc32c",
        "ssl",
    }
    allowed = ("disque_trio.client", "disque_trio.wire", "disque_trio.worker", "disque_trio.system")
    ours = {each for each in modules if each.startswith("disque_trio.")}
    others = {
        f"disque_trio.statemachine{each}"
        for each in ("", ".base", ".extensions", ".commandoptions", ".joboptions")
    }
    terminal = ("", ".counting", ".escapes")
    others |= {f"disque_trio.terminal{each}" for each in terminal}
    assert {each for each in ours - others if not each.startswith(allowed)} == set()


def test_an_app_needs_few_modules() -> None:
    modules = loaded("from disque_trio.worker import App")

    assert len(modules) <= 230  # 206 with Python 3.11; a module costs some 0.3 ms


def test_a_worker_imports_what_its_app_uses() -> None:
    worker = "from disque_trio.cli.worker import running; from disque_trio.worker import App; "
    modules = loaded(worker + "App().handler()")

    unused = ("worker.cron", "worker.interop.", "worker.operating.jobs", "client.blocking")
    assert {
        each for each in modules if each.removeprefix("disque_trio.").startswith(unused)
    } == set()
    assert not modules & {"zoneinfo", "http.client", "email.message", "opentelemetry"}
    with_cron = worker + "a = App(); a.cron(every=30)(a.task(name='t')(print)); a.handler()"
    assert "disque_trio.worker.cron.known" in loaded(with_cron)


def test_the_package_itself_imports_nothing() -> None:
    modules = loaded("import disque_trio.worker")

    assert {each for each in modules if each.startswith("disque_trio.")} == {"disque_trio.worker"}
