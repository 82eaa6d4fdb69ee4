"""Makes the pictures of docs/console.md: `python -m tests.web.chromium.pictures docs`."""

import base64
import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import trio

from tests.sim.mutants import failing
from tests.web.chromium import consoles, devtools, scene
from tests.web.chromium.fake import serving

PICTURES: Final = {
    "overview": ("light", "", (), 720),
    "cluster": ("dark", "#/cluster", (), 720),
    "queues": ("light", "#/queues", ("j", "P", "Enter"), 720),
    "queue": ("dark", "#/queue/mail", (), 720),
    "job": ("dark", f"#/job/{scene.JOB}", ("ArrowLeft",), 1080),
    "flow": ("light", f"#/flow/{scene.FLOW}", (), 720),
    "workers": ("light", "#/workers", (), 720),
    "dead": ("dark", "#/dead", (), 720),
    "later": ("light", "#/later", (), 720),
}
"""By name: the theme, the page, the keys that are pressed there, and how high the window is."""


async def make(folder: Path) -> None:
    """All of them, as WebP."""
    with tempfile.TemporaryDirectory() as profile, devtools.chromium(Path(profile)) as browser:
        async with serving(scene.fake()) as fake:
            for name, (theme, hash_, keys, height) in PICTURES.items():
                async with devtools.tab(browser, width=1280, height=height) as tab:
                    prefers = {"name": "prefers-color-scheme", "value": theme}
                    await tab.ask("Emulation.setEmulatedMedia", features=[prefers])
                    await tab.open(fake.address + hash_)
                    await tab.until("document.querySelector('.facts, tbody tr')")
                    await tab.press(*keys)
                    if "P" in keys:
                        await tab.has("a restart forgets it")
                    await _shoot(tab, folder / f"console-{name}.webp")


async def _shoot(tab: devtools.Tab, file: Path) -> None:
    shot = await tab.ask("Page.captureScreenshot", format="webp", quality=82)
    file.write_bytes(base64.b64decode(shot["data"]))


async def make_runs(folder: Path) -> None:
    """A run that fails, and a sandbox in which something is broken."""
    with tempfile.TemporaryDirectory() as work, devtools.chromium(Path(work)) as browser:
        failing.trace(Path(work) / "run.jsonl")
        async with _replayed(work) as served, _tab(browser) as tab:
            await tab.open(served.address)
            await tab.has("FAIL")
            await tab.press("e", "e", "e", "e")
            await _shoot(tab, folder / "console-replay.webp")
        async with consoles.serving("--sandbox", "--seed", "7") as served, _tab(browser) as tab:
            await _break(tab, served)
            await _shoot(tab, folder / "console-sandbox.webp")


@contextlib.asynccontextmanager
async def _replayed(work: str) -> AsyncIterator[consoles.Served]:
    with contextlib.chdir(work):  # the page shows the name of the file
        async with consoles.serving("--trace", "run.jsonl") as served:
            yield served


def _tab(browser: str) -> contextlib.AbstractAsyncContextManager[devtools.Tab]:
    return devtools.tab(browser, width=1280, height=1200)


async def _break(tab: devtools.Tab, served: consoles.Served) -> None:
    prefers = {"name": "prefers-color-scheme", "value": "dark"}
    await tab.ask("Emulation.setEmulatedMedia", features=[prefers])
    await tab.open(served.address)
    await tab.has("No operation yet.")
    await tab.press("A")
    await tab.has("a job to n1")
    served.sandbox.box.run_to(1_000_000)
    await tab.press("T")
    await tab.has("is taken at n1")
    served.sandbox.box.run_to(2_000_000)
    await tab.press("x", "C", "j", "j", "j", "K")
    await tab.has("n3 is killed")
    served.sandbox.box.run_to(7_500_000)
    await tab.press("k", "T")
    await tab.has("is taken at n2")
    served.sandbox.box.run_to(8_000_000)
    await tab.has("8.000000 s")
    await tab.until("document.querySelector('.timeline .lifelines text')")


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    trio.run(make, folder)
    trio.run(make_runs, folder)
