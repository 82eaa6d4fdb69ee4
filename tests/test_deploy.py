"""The files that others deploy with: as far as they can be tried without their engines."""

import io
import json
import re
import shlex
import shutil
import signal
import subprocess
import textwrap
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
import yaml

from disque_trio.cli.frame import USAGE
from disque_trio.cli.worker import PROGRAM as PROGRAM_OF_WORKERS
from disque_trio.cli.worker.options import Options
from disque_trio.serving.config_file import load
from disque_trio.serving.secret_files import with_secrets
from disque_trio.terminal.options import options_of, parse
from disque_trio.worker.statuses import REFUSED
from tests.cluster.processes import eventually, free_port
from tests.cluster.talk import connection
from tests.serving.process import running
from tests.serving.test_systemd import Listener

ROOT: Final = Path(__file__).parents[1]
DEPLOY: Final = ROOT / "deploy"
PROGRAM: Final = "/opt/disque-trio/bin/disque-trio"


def unit() -> dict[str, list[str]]:
    """The directives of the systemd unit."""
    return values("disque-trio.service", "=")


def container() -> dict[str, list[str]]:
    """The instructions of the container file."""
    return values("Containerfile", " ")


def values(file: str, separator: str) -> dict[str, list[str]]:
    """What follows each name on the lines of a file."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in (DEPLOY / file).read_text().splitlines():
        name, separated, value = line.partition(separator)
        if separated and not line.startswith("#"):
            found[name].append(value)
    return found


def test_the_unit_starts_a_node_that_reports_to_systemd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directives = unit()
    assert directives["Type"] == ["notify"]
    (command,) = directives["ExecStart"]
    program, *words = shlex.split(command)
    assert program == PROGRAM
    port = free_port()
    config = tmp_path / "disque.conf"
    config.write_text(f"port {port}\nbind 127.0.0.1\n")
    places = {"/etc/disque/disque.conf": str(config), "/var/lib/disque": str(tmp_path)}
    systemd = Listener(str(tmp_path / "notify"))
    monkeypatch.setenv("NOTIFY_SOCKET", systemd.socket.getsockname())
    monkeypatch.setenv("WATCHDOG_USEC", directives["WatchdogSec"][0] + "000000")

    with running(tmp_path, *(places.get(word, word) for word in words)) as process:
        assert systemd.receives()[0] == "READY=1"
        with connection(port) as client:
            assert client.text("PING") == b"PONG"
        process.signal(signal.SIGHUP)
        process.says("asked_by=SIGHUP")
        process.signal(signal.SIGTERM)
        assert process.ends() == 0
    systemd.socket.close()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    file = tmp_path / "disque-trio.service"
    file.write_text((DEPLOY / file.name).read_text().replace(PROGRAM, "/bin/true"))

    done = subprocess.run(
        ["systemd-analyze", "verify", file], capture_output=True, text=True, check=False
    )

    complaints = [line for line in done.stderr.splitlines() if file.name in line]
    assert complaints == []


def test_what_the_container_copies_is_there() -> None:
    for instruction in container()["COPY"]:
        *sources, _ = [word for word in instruction.split() if not word.startswith("--")]
        if "--from" not in instruction:
            assert all((ROOT / source).exists() for source in sources), instruction


def test_the_container_installs_all_that_the_package_is_built_from() -> None:
    """What pyproject.toml names has to be copied, or the build fails."""
    copied = " ".join(container()["COPY"]).split()
    named = re.findall(
        r'"(README\.md|LICENSE|\w+\.py|compiling(?=/))', (ROOT / "pyproject.toml").read_text()
    )

    assert {"pyproject.toml", "constraints.txt", *named} <= set(copied)


def test_the_container_runs_a_node_and_its_health_check_finds_it(tmp_path: Path) -> None:
    instructions = container()
    assert json.loads(instructions["ENTRYPOINT"][0]) == [PROGRAM]
    words = json.loads(instructions["CMD"][0])
    check = json.loads(instructions["HEALTHCHECK"][0].partition("CMD ")[2])
    assert check[0] == PROGRAM
    port = free_port()
    words = [str(tmp_path) if word == "/var/lib/disque" else word for word in words]

    with running(tmp_path, *words, "--port", str(port), "--bind", "127.0.0.1") as node:
        node.says("node started")
        with running(tmp_path, *check[1:], "--port", str(port)) as healthy:
            assert healthy.ends() == 0
        node.signal(signal.Signals[instructions["STOPSIGNAL"][0]])
        assert node.ends() == 0
    with running(tmp_path, *check[1:], "--port", str(port)) as ill:
        assert ill.ends() == 1


def test_the_command_of_the_page_for_a_container_is_a_configuration(tmp_path: Path) -> None:
    page = (ROOT / "docs/deploying.md").read_text()
    begin = page.index("    podman run ")
    text = page[begin : page.index("\n\n", begin)].replace("\\\n", " ")
    words = shlex.split(text.replace("/var/lib/disque", str(tmp_path)))
    secrets = {word.partition(",")[0] for before, word in pairwise(words) if before == "--secret"}
    config = load(words[words.index("server") + 1 :], None).config  # type: ignore[arg-type]

    assert config.bind == ("10.0.0.1", "127.0.0.1")
    files = {Path(config.requirepass_file), Path(config.cluster_secret_file)}
    assert files == {Path("/run/secrets") / name for name in secrets}


def test_the_log_may_be_moved_at_any_time(tmp_path: Path) -> None:
    """As deploy/logrotate.conf says: no signal is needed."""
    port = str(free_port())
    log = tmp_path / "disque.log"
    options = ("--port", port, "--bind", "127.0.0.1", "--logfile", str(log))
    with running(tmp_path, "server", *options) as node:
        eventually(lambda: log.exists() and log.read_text(), 30.0, "the node has begun its log")
        with_a_line = log.read_text()
        log.rename(tmp_path / "disque.log.1")
        node.signal(signal.SIGTERM)
        assert node.ends() == 0

    assert (tmp_path / "disque.log.1").read_text().startswith(with_a_line)
    assert "stopping" in log.read_text()


def test_what_the_page_says_most_clusters_say_is_a_configuration(tmp_path: Path) -> None:
    page = (ROOT / "docs/deploying.md").read_text()
    begin = page.index("    port 7711")
    block = page[begin : page.index("    ```", begin)]
    for name in ("password", "cluster"):
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_text("0123456789abcdef" * 4)
    text = textwrap.dedent(block).replace("/etc/disque", str(tmp_path))

    config = load(["-", "--dir", str(tmp_path)], io.BytesIO(text.encode())).config

    assert config.bind[0] == "10.0.0.1", "dials come from the first"
    assert "127.0.0.1" in config.bind, "the health check asks there"
    assert with_secrets(config, pytest.fail).cluster_secret


def test_the_unit_of_workers_is_understood_and_waits_for_jobs(tmp_path: Path) -> None:
    directives = values("disque-trio-worker.service", "=")
    program, *words = shlex.split(directives["ExecStart"][0])
    assert Path(program).name == "disque-trio"
    options = worker_options(words)
    assert options.processes > 1
    assert float(directives["TimeoutStopSec"][0]) > options.drain + options.abort
    assert directives["RestartPreventExitStatus"] == [f"{USAGE} {REFUSED}"]
    assert directives["KillMode"] == ["mixed"]


def test_the_container_of_workers_is_understood() -> None:
    instructions = values("Containerfile.worker", " ")
    words = json.loads(instructions["ENTRYPOINT"][0]) + json.loads(instructions["CMD"][0])
    assert Path(words[0]).name == "disque-trio"
    environment = dict(
        pair.split("=", 1) for pair in instructions["ENV"][0].split() if "DISQUE" in pair
    )
    options = worker_options(words[1:], environment)
    assert options.health == ("127.0.0.1", 8080)
    check = json.loads(instructions["HEALTHCHECK"][0].partition("CMD ")[2])
    assert worker_options(check[1:], environment).check


def test_kubernetes_waits_for_the_jobs_of_a_worker() -> None:
    deployment = yaml.safe_load((DEPLOY / "kubernetes/worker.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    options = worker_options(["worker", *container["args"]])
    assert pod["terminationGracePeriodSeconds"] > options.drain + options.abort
    [port] = container["ports"]
    assert options.health == ("0.0.0.0", port["containerPort"])
    paths = {
        name: container[f"{name}Probe"]["httpGet"]["path"]
        for name in ("startup", "liveness", "readiness")
    }
    assert paths == {"startup": "/live", "liveness": "/live", "readiness": "/health"}
    names = {each["name"] for each in container["env"]}
    assert {name for name in names if name.startswith("DISQUE_WORKER")} <= {
        option.variable for _, option in options_of(Options)
    }


def worker_options(words: list[str], environment: dict[str, str] | None = None) -> Options:
    """The settings of a worker that is started so."""
    assert words[0] == "worker"
    found = parse(PROGRAM_OF_WORKERS, "worker", words[1:], environment or {}).options
    assert isinstance(found, Options)
    return found
