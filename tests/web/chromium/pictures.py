"""Makes the pictures of docs/console.md: `python -m tests.web.chromium.pictures docs`."""

import base64
import sys
import tempfile
from pathlib import Path
from typing import Final

import trio

from tests.web.chromium import devtools, scene
from tests.web.chromium.fake import serving

PICTURES: Final = {
    "overview": ("light", "", ()),
    "cluster": ("dark", "#/cluster", ()),
    "queues": ("light", "#/queues", ("j", "P")),
    "queue": ("dark", "#/queue/mail", ()),
    "job": ("dark", f"#/job/{scene.JOB}", ()),
    "workers": ("light", "#/workers", ()),
    "dead": ("dark", "#/dead", ()),
    "later": ("light", "#/later", ()),
}
"""By name: the theme, the page, and the keys that are pressed there."""


async def make(folder: Path) -> None:
    """All of them, as WebP."""
    with tempfile.TemporaryDirectory() as profile, devtools.chromium(Path(profile)) as browser:
        async with serving(scene.fake()) as fake:
            for name, (theme, hash_, keys) in PICTURES.items():
                async with devtools.tab(browser, width=1280, height=720) as tab:
                    prefers = {"name": "prefers-color-scheme", "value": theme}
                    await tab.ask("Emulation.setEmulatedMedia", features=[prefers])
                    await tab.open(fake.address + hash_)
                    await tab.until("document.querySelector('.facts, tbody tr')")
                    await tab.press(*keys)
                    if keys:
                        await tab.has("a restart forgets it")
                    shot = await tab.ask("Page.captureScreenshot", format="webp", quality=82)
                    file = folder / f"console-{name}.webp"
                    file.write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    trio.run(make, Path(sys.argv[1]))
