"""What `make site` adds to mkdocs: pages that stand outside docs/ become part of the site.

GitHub follows a link from a page to `../CONTRIBUTING.md`; a site is docs/ alone. So each file
outside that a page links to is added under its path in the repository, and links to it lose the
`../` that leads out of docs/.
"""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any, Final

from mkdocs.structure.files import File, InclusionLevel

_LINK: Final = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)]*)?\))")
_ROOT: Final = Path(__file__).parents[1]


def on_files(files: Any, config: Any) -> Any:
    """Add the files outside docs/ that pages link to, and those that these link to."""
    todo = [(f"docs/{file.src_uri}", file.content_string) for file in files.documentation_pages()]
    while todo:
        place, text = todo.pop()
        for _, target, _ in _LINK.findall(text):
            found = _path(place, target)
            if not found.startswith("docs/") and files.get_file_from_path(found) is None:
                file = File(found, str(_ROOT), config.site_dir, config.use_directory_urls)
                file.inclusion = InclusionLevel.NOT_IN_NAV
                files.append(file)
                if found.endswith(".md"):
                    todo.append((found, (_ROOT / found).read_text("utf-8")))
    return files


_BOOSTS: Final = (
    (r"decisions/.*|original\.md|CHANGELOG\.md|CONTRIBUTING\.md", 0.1),
    (
        r"(bus|differences|journal|scenario-keys|performance|simulation|engines|design|guarantees)\.md",
        0.3,
    ),
    (r"(troubleshooting|faq|tutorial.*|deploying|containers|operating|console|worker.*)\.md", 2.0),
)
"""How a search ranks pages, by the first match: answers for users before internals and records."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with links as they are in the site."""
    here = page.file.src_uri
    boosts = [boost for pages, boost in _BOOSTS if re.fullmatch(pages, here)]
    if boosts:
        page.meta["search"] = {"boost": boosts[0]}
    outside = Path(page.file.abs_src_path) == _ROOT / here
    place = here if outside else f"docs/{here}"

    def moved(match: re.Match[str]) -> str:
        target = _path(place, match[2]).removeprefix("docs/")
        return f"{match[1]}{relpath(target, PurePosixPath(here).parent)}{match[3]}"

    return _LINK.sub(moved, markdown)


def _path(place: str, target: str) -> str:
    """Where in the repository a link of the page at `place` leads."""
    return normpath(PurePosixPath(place).parent / target)
