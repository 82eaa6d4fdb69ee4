"""The wheel of the compiled form: what is in it, and that it runs where no compiler's parts are."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from compiling.layout import ROOT, SUFFIX
from compiling.lower import PLAIN
from compiling.modules import PACKAGE, compiled
from disque_trio.statemachine.form import FORM
from tests.cluster.processes import Server

pytestmark = pytest.mark.skipif(FORM == "pure", reason="only `make test-compiled` compiles")
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input")
IMPORT = re.compile(r"^(?:from|import) (\w+)[\w.]*(?: import |$)", re.MULTILINE)
HERE = "import sys; sys.modules['mypy_extensions'] = sys.modules['librt'] = None; "


def make_wheel(
    directory: Path, source: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    words = ("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir")
    return subprocess.run(
        [*PIP, *words, str(directory), str(source)],
        check=False,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=500,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    made = make_wheel(directory, DISQUE_FORM="compiled")
    assert made.returncode == 0, made.stderr
    (path,) = directory.iterdir()
    return path


@pytest.fixture
def installed(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the package alone, before all others on the path."""
    place = tmp_path / "site"
    words = ("install", "--no-deps", "--no-index", "--target", str(place), str(wheel))
    subprocess.run([*PIP, *words], check=True, timeout=100)
    monkeypatch.setenv("PYTHONPATH", str(place))
    return place


def test_a_wheel_has_the_source_and_a_native_module_beside_each_that_is_compiled(
    wheel: Path,
) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("disque_trio")}

    plain = PLAIN.replace(".", "/")
    natives = {f"disque_trio/{path}{SUFFIX}" for path in compiled()} | {plain + SUFFIX}
    sources = {str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*.py")}
    assert {name for name in names if name.endswith(SUFFIX)} == natives | {
        f"disque_trio__mypyc{SUFFIX}"
    }
    assert {name for name in names if name.endswith(".py")} == sources | {plain + ".py"}
    text = zipfile.ZipFile(wheel).read("disque_trio/statemachine/machine.py")
    assert text == (PACKAGE / "statemachine" / "machine.py").read_bytes()


def test_its_build_has_all_packages_that_compiled_modules_import(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """pip builds in an environment of its own, with nothing else."""
    from hatchling.metadata.core import ProjectMetadata  # noqa: PLC0415
    from hatchling.plugin.manager import PluginManager  # noqa: PLC0415

    from compiling.wheel import CompiledForm  # noqa: PLC0415 - only here is hatchling sure to be

    monkeypatch.setenv("DISQUE_FORM", "compiled")
    metadata = ProjectMetadata(str(ROOT), PluginManager())
    hook = CompiledForm(str(ROOT), {}, None, metadata, "", "wheel")
    brought = {re.split(r"[^\w-]", each)[0] for each in hook.dependencies()}

    sources = [PACKAGE / f"{path}.py" for path in compiled()]
    imported = {
        name
        for source in sources
        for name in re.findall(
            r"^(?:from|import) ([\w]+)[\w.]*(?: import |$)", source.read_text(), re.MULTILINE
        )
    } - {*sys.stdlib_module_names, "disque_trio"}
    owners = packages_distributions()
    assert {owner for name in imported for owner in owners[name]} <= brought
    assert "disque-trio" not in brought


def test_its_description_has_no_links_that_lead_nowhere(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    [name] = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]

    text = archive.read(name).decode()

    assert "# disque_trio" in text
    assert "all commands" in text, "the text of a link stays"
    assert re.findall(r"\]\((?!https?:)[^)]*\)", text) == []


def test_its_name_says_for_which_python_it_is(wheel: Path) -> None:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"

    assert f"-{python}-{python}-" in wheel.name


def test_an_installed_wheel_runs_compiled_and_says_so(installed: Path, tmp_path: Path) -> None:
    run = HERE + "from disque_trio.__main__ import main; sys.exit(main())"
    command = (sys.executable, "-P", "-c", run)
    told = subprocess.run(
        [*command, "--version"], capture_output=True, check=True, text=True, timeout=100
    )
    server = Server(tmp_path / "node", command=(*command, "server")).start()
    try:
        info = server.wait().client.info("server")
    finally:
        problems = server.close()

    assert "compiled" in told.stdout
    assert info["disque_form"] == "compiled"
    assert problems == []


def test_a_wheel_is_pure_unless_asked(tmp_path: Path) -> None:
    made = make_wheel(tmp_path, DISQUE_FORM="")

    assert made.returncode == 0, made.stderr
    (path,) = tmp_path.iterdir()
    assert path.name.endswith("-py3-none-any.whl")
    assert not [name for name in zipfile.ZipFile(path).namelist() if name.endswith(SUFFIX)]


def test_without_a_compiler_there_is_no_wheel_and_one_clear_message(
    tmp_path: Path,
) -> None:
    left_out = shutil.ignore_patterns("build", "dist", "tests", ".*")
    source = shutil.copytree(ROOT, tmp_path / "source", ignore=left_out)

    made = make_wheel(tmp_path, source, DISQUE_FORM="compiled", CC="/nowhere/cc")

    assert made.returncode == 1
    assert "there is no C compiler '/nowhere/cc'" in made.stderr
    assert "Traceback" not in made.stderr
    assert list(tmp_path.glob("*.whl")) == []
