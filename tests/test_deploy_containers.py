"""The files for Docker and Kubernetes: read, and their commands run in pods of namespaces."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from disque_trio.serving.config_file import load
from tests.cluster.pods import NETWORK, Pod, World, is_possible, world
from tests.cluster.processes import SOON_S, Cluster, eventually

DEPLOY: Final = Path(__file__).parents[1] / "deploy"
SECRETS: Final = {"password": "a secret of clients", "cluster": "0123456789abcdef" * 4}
NAMES: Final = ("disque-1", "disque-2", "disque-3")


def compose() -> dict[str, Any]:
    found = yaml.safe_load((DEPLOY / "compose/compose.yaml").read_text())
    assert isinstance(found, dict)
    return found


def kubernetes(kind: str) -> list[dict[str, Any]]:
    """The objects of this kind."""
    found = yaml.safe_load_all((DEPLOY / "kubernetes/disque.yaml").read_text())
    return [each for each in found if each["kind"] == kind]


def container() -> dict[str, Any]:
    (stateful,) = kubernetes("StatefulSet")
    (found,) = stateful["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def commands(directory: Path, pod: int = 1) -> dict[str, list[str]]:
    """What a node is started with, by each of the files, with the places of this machine."""
    for name, text in SECRETS.items():
        (directory / name).touch(mode=0o600)
        (directory / name).write_text(text)
    places = {
        "/run/secrets/disque-": f"{directory}/",
        "/etc/disque/": f"{directory}/",
        "/var/lib/disque": str(directory),
        "$(POD_IP)": f"{NETWORK}.{pod}",
    }
    found = {}
    for name, words in (
        ("compose", compose()["services"][f"disque-{pod}"]["command"]),
        ("kubernetes", container()["args"]),
    ):
        program, *options = words
        assert program == "server"
        for place, here in places.items():
            options = [word.replace(place, here) for word in options]
        found[name] = options
    return found


@pytest.mark.parametrize("file", ["compose", "kubernetes"])
def test_each_option_is_a_directive(tmp_path: Path, file: str) -> None:
    config = load(commands(tmp_path)[file], None).config  # type: ignore[arg-type]

    assert config.appendonly
    assert config.web_port == 8711
    assert config.cluster_seeds


def test_the_services_and_the_pod_have_the_ports_of_the_node(tmp_path: Path) -> None:
    config = load(commands(tmp_path)["kubernetes"], None).config  # type: ignore[arg-type]
    ports = {each["name"]: each["containerPort"] for each in container()["ports"]}

    assert ports == {"client": config.port, "bus": config.port + 10_000, "web": config.web_port}
    for service in kubernetes("Service"):
        for each in service["spec"]["ports"]:
            assert ports[each["name"]] == each["port"]
    for probe, path in (("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
        assert container()[probe]["httpGet"] == {"path": path, "port": "web"}
    (stateful,) = kubernetes("StatefulSet")
    nodes = stateful["spec"]["serviceName"]
    assert config.cluster_seeds == (f"{nodes}:{config.port}",)
    (headless,) = [each for each in kubernetes("Service") if each["metadata"]["name"] == nodes]
    assert headless["spec"]["publishNotReadyAddresses"]


def test_the_memory_limit_of_the_pod_is_above_maxmemory(tmp_path: Path) -> None:
    config = load(commands(tmp_path)["kubernetes"], None).config  # type: ignore[arg-type]
    limit = container()["resources"]["limits"]["memory"]

    assert config.maxmemory * 1.25 < int(limit.removesuffix("Mi")) << 20


def test_the_files_name_the_same_image_and_volume_as_the_container_file() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    (volume,) = json.loads(text.partition("VOLUME ")[2].partition("\n")[0])

    assert any(each["mountPath"] == volume for each in container()["volumeMounts"])
    for service in compose()["services"].values():
        assert service["volumes"][0].endswith(f":{volume}")
        assert (DEPLOY / "compose" / service["build"]["context"] / "deploy/Containerfile").exists()


# In pods.


@pytest.fixture
def pods(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[list[Pod]]:
    """Three pods, with the commands of a file, that have started."""
    with world(tmp_path) as (net, found):
        for number, name in enumerate(NAMES, 1):
            directory = tmp_path / f"p{number}"
            directory.mkdir()
            options = commands(directory, number)[request.param]
            net.network(name, f"{NETWORK}.{number}")
            found.append(Pod(directory, options, world=net, name=name))
        name_all(net, [1, 2, 3])
        for pod in found:
            pod.start()
        for pod in found:
            enter(pod)
        yield found


def name_all(net: World, places: list[int]) -> None:
    ips = [f"{NETWORK}.{place}" for place in places]
    names = {name: [ip] for name, ip in zip(NAMES, ips, strict=True)}
    net.names({**names, "disque-nodes": ips})


def enter(pod: Pod) -> None:
    """Wait until the pod's node lets a client in."""
    eventually(lambda: pod.client.text("AUTH", SECRETS["password"]), SOON_S, "it answers")


def probe(pod: Pod, path: str) -> str:
    """What a kubelet gets from the pod's web port."""
    script = (
        "import sys, urllib.request as u, urllib.error as e\n"
        "try: print(u.urlopen(sys.argv[1]).status)\n"
        "except e.HTTPError as error: print(error.code)"
    )
    return pod.world.python(script, f"http://127.0.0.1:8711{path}", pod=pod.name).strip()


def metrics(pod: Pod, host: str) -> str:
    """What Prometheus gets, which is in the same network and has the password."""
    script = (
        "import sys, urllib.request as u, urllib.error as e\n"
        "request = u.Request(sys.argv[1], headers={'Authorization': 'Bearer ' + sys.argv[2]})\n"
        "try: print(u.urlopen(request).read().decode())\n"
        "except e.HTTPError as error: print(error.code, error.read().decode())"
    )
    url = f"http://{host}:8711/metrics"
    return pod.world.python(script, url, SECRETS["password"], pod=pod.name)


@pytest.mark.slow
@pytest.mark.skipif(not is_possible(), reason="needs namespaces, unshare and ip")
@pytest.mark.parametrize(
    ("pods", "host"),
    [("compose", "disque-2"), ("kubernetes", f"{NETWORK}.2")],
    indirect=["pods"],
)
def test_what_the_page_tells_to_do_next_works(pods: list[Pod], host: str) -> None:
    Cluster(list(pods)).wait()

    assert 'disque_peers{state="up"} 2' in metrics(pods[0], host)
    secret = str(pods[0].directory / "password")
    words = [sys.executable, "-m", "disque_trio", "doctor", "--password-file", secret]
    inside = [*pods[0].world.inside(pods[0].name), *words]
    done = subprocess.run(inside, capture_output=True, text=True, check=False)
    assert "3 of 3 nodes answer" in done.stdout, done.stdout + done.stderr
    assert "problem" not in done.stdout, done.stdout


def test_the_page_runs_the_program_and_the_secrets_of_the_files() -> None:
    page = (DEPLOY.parent / "docs/containers.md").read_text()
    text = (DEPLOY / "Containerfile").read_text()
    (entry,) = json.loads(text.partition("ENTRYPOINT ")[2].partition("\n")[0])

    assert f"PATH={Path(entry).parent}:" in text
    ran = re.findall(r"exec (\S+) (?:-- )?(disque-trio) doctor --password-file (\S+)", page)
    assert ran == [
        ("disque-1", "disque-trio", "/run/secrets/disque-password"),
        ("disque-0", "disque-trio", "/etc/disque/password"),
    ]


@pytest.mark.skipif(not is_possible(), reason="needs namespaces, unshare and ip")
@pytest.mark.slow
@pytest.mark.parametrize("pods", ["kubernetes", "compose"], indirect=True)
def test_pods_join_restart_at_new_addresses_and_lose_nothing(pods: list[Pod]) -> None:
    net, cluster = pods[0].world, Cluster(list(pods))
    cluster.wait()
    assert [probe(pod, path) for pod in pods for path in ("/livez", "/readyz")] == ["200"] * 6
    added = {pods[0].client.add("q", f"body {n}", "REPLICATE", 3) for n in range(100)}

    places = [1, 2, 3]
    for number, pod in enumerate(pods):
        pod.terminate()
        places[number] = 11 + number
        net.move(pod.name, f"{NETWORK}.{places[number]}")
        name_all(net, places)
        old, new = f"{NETWORK}.{number + 1}", f"{NETWORK}.{places[number]}"
        pod.options = [new if word == old else word for word in pod.options]
        pod.start()
        enter(pod)
        cluster.wait()

    taken: set[bytes] = set()
    while taken < added:
        jobs = pods[2].client.get("q", count=100, timeout=60_000)
        assert jobs, f"{len(added - taken)} jobs do not come"
        pods[2].client.call("ACKJOB", *(job.id for job in jobs))
        taken |= {job.id for job in jobs}
    assert taken == added
