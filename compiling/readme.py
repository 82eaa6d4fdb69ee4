"""The README as a package index shows it, where relative links and pictures lead nowhere.

hatchling calls this for the metadata of a wheel. A relative link becomes its text, and a picture
that is a file of the repository is left out.
"""

import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE: Final = re.compile(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n\n?", re.MULTILINE)
_LINK: Final = re.compile(r"\[([^\]]*)\]\((?!https?:)[^)]*\)")


class Readme(MetadataHookInterface):
    """`[tool.hatch.metadata.hooks.custom]`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description."""
        text = Path(self.root, "README.md").read_text("utf-8")
        shown = _LINK.sub(r"\1", _PICTURE.sub("", text))
        metadata["readme"] = {"content-type": "text/markdown", "text": shown}
