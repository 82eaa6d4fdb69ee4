import re
from collections import Counter
from importlib import resources

from disque_trio.sim.picture import scripts
from disque_trio.statemachine.events import Kind

TOP_LEVEL = re.compile(
    r"^(?:export )?(?:async )?(?:function\*?|class|const|let) (\w+|\$)", re.MULTILINE
)
IMPORT = re.compile(r'^import (.+?) from "(.+?)";', re.MULTILINE | re.DOTALL)


def test_no_name_is_at_the_top_level_of_two_modules() -> None:
    names = Counter(name for text in scripts.modules().values() for name in TOP_LEVEL.findall(text))

    assert len(names) > 100
    assert [name for name, count in names.items() if count > 1] == []


def test_imports_keep_their_names_and_are_of_modules_that_are_there() -> None:
    modules = scripts.modules()

    for path, text in modules.items():
        folder = "timeline/" if path.startswith("timeline/") else ""
        for names, source in IMPORT.findall(text):
            assert re.fullmatch(r"\{[\w\s,]+\}", names), f"{path}: {names}"
            assert " as " not in names
            imported = modules[folder + source.removeprefix("./")]
            for name in re.findall(r"\w+", names):
                pattern = rf"^export (?:function|class|const|let) {name}\b"
                assert re.search(pattern, imported, re.MULTILINE), f"{path}: {name}"


def test_the_timeline_knows_nothing_of_the_page() -> None:
    for path, text in scripts.modules().items():
        if path.startswith("timeline/"):
            assert "getElementById" not in text, path
            assert "querySelector" not in text, path
            assert '"../' not in text, path


def test_every_module_of_the_folder_is_put_into_the_picture() -> None:
    files = resources.files("disque_trio.sim.picture")
    there = {file.name for file in files.iterdir() if file.name.endswith(".js")}
    there |= {
        f"timeline/{file.name}"
        for file in (files / "timeline").iterdir()
        if file.name.endswith(".js")
    }

    assert there == set(scripts.modules())


def test_one_script_has_no_modules() -> None:
    assert re.findall(r"^(?:import|export)\b.*", scripts.joined(), re.MULTILINE) == []


def test_every_event_of_a_job_has_its_words() -> None:
    words = scripts.event_words()

    assert set(Kind) <= set(words)
    assert all("{job}" in each for each in words.values())
