"""A Chromium without a screen, and its pages: asked over the DevTools protocol.

(https://chromedevtools.github.io/devtools-protocol/)
"""

import base64
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, open_websocket_url

NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser")
"""The first one can show no window, and takes two thirds of the time."""
CHROMIUM: Final = next(filter(None, map(shutil.which, NAMES)), None)
_FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--host-resolver-rules=MAP *.example 127.0.0.1",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--remote-debugging-port=0",
)
_START_S: Final = 60.0
PATIENCE_S: Final = 30.0
"""For one answer, and for what a page is to become."""
_UNTIL: Final = """
new Promise((done) => {
  const look = () => {
    let found;
    try { found = (%s); } catch { found = false; }
    if (found) done(true); else setTimeout(look, 15);
  };
  look();
})
"""
_CODES: Final = {" ": "Space", "/": "Slash", "?": "Slash", ".": "Period", "[": "BracketLeft"}


@contextmanager
def chromium(profile: Path) -> Iterator[str]:
    """A browser, and the address at which it is asked."""
    assert CHROMIUM is not None
    command = [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
    quiet = subprocess.DEVNULL
    # Debian's chromium-headless-shell is a script that starts the browser: both are ended.
    with subprocess.Popen(
        command, stdin=quiet, stdout=quiet, stderr=quiet, process_group=0
    ) as process:
        try:
            yield _address(profile / "DevToolsActivePort", process)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def _address(file: Path, process: subprocess.Popen[bytes]) -> str:
    """It writes the file when it listens."""
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) == 2:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        assert process.poll() is None, f"Chromium has ended with {process.returncode}"
        time.sleep(0.02)
    raise TimeoutError("Chromium does not listen")


@attrs.define(eq=False)
class Tab:
    """One page in the browser."""

    socket: WebSocketConnection
    session: str = ""
    errors: list[str] = attrs.field(factory=list)
    """What the page complains of: exceptions, errors on the console, refusals by the policy."""
    _last: int = 0
    _answers: dict[int, trio.MemorySendChannel[dict[str, Any]]] = attrs.field(factory=dict)

    async def ask(self, method: str, **params: object) -> dict[str, Any]:
        """One command of the protocol."""
        self._last += 1
        send, receive = trio.open_memory_channel[dict[str, Any]](1)
        self._answers[self._last] = send
        said = {"id": self._last, "method": method, "params": params}
        if self.session:
            said["sessionId"] = self.session
        with trio.fail_after(PATIENCE_S):
            await self.socket.send_message(json.dumps(said))
            answer = await receive.receive()
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    async def listen(self) -> None:
        """Until the connection ends."""
        try:
            while True:
                message = json.loads(await self.socket.get_message())
                if "id" in message:
                    self._answers.pop(message["id"]).send_nowait(message)
                elif complaint := _complaint(message):
                    self.errors.append(complaint)
        except ConnectionClosed:
            pass

    async def run(self, script: str) -> Any:
        """The value of an expression, or of the promise that it gives."""
        answer = await self.ask(
            "Runtime.evaluate",
            expression=script,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, condition: str) -> None:
        """It is true in the page. What is shown instead is in the error."""
        try:
            await self.run(_UNTIL % condition)
        except AssertionError as error:
            if "navigated" not in str(error):
                raise
            await self.until(condition)  # a form was sent meanwhile: it is true of the next page
        except trio.TooSlowError:
            raise AssertionError(f"not {condition}:\n{await self.text()}\n{self.errors}") from None

    async def has(self, *texts: str) -> None:
        """All of these are to be read on the page."""
        wanted = json.dumps(texts)
        await self.until(f"{wanted}.every((text) => document.body.innerText.includes(text))")

    async def text(self, selector: str = "body") -> str:
        """What a person reads there."""
        return str(await self.run(f"document.querySelector({json.dumps(selector)})?.innerText"))

    async def open(self, address: str) -> None:
        """Another page, from the beginning."""
        await self.ask("Page.navigate", url=address)
        await self.until("document.readyState === 'complete'")

    async def press(self, *keys: str, ctrl: bool = False) -> None:
        """Keys, one after the other."""
        for key in keys:
            text = key if len(key) == 1 and not ctrl else "\r" if key == "Enter" else ""
            common = {
                "key": key,
                "code": _CODES.get(key, key),
                "modifiers": 2 if ctrl else 0,
                "windowsVirtualKeyCode": {"Enter": 13, "Escape": 27, "Tab": 9}.get(key, 0),
            }
            await self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
            await self.ask("Input.dispatchKeyEvent", type="keyUp", **common)
            # What the page draws later is drawn.
            await self.run("new Promise((done) => setTimeout(done, 0))")

    async def click(self, selector: str, text: str = "") -> None:
        """The first element there with the text."""
        what = f"{json.dumps(selector)}, {json.dumps(text)}"
        find = "((selector, text) => [...document.querySelectorAll(selector)]"
        find += f".find((node) => node.innerText.includes(text)))({what})"
        await self.until(find)
        await self.run(f"{find}.click()")

    async def names(self) -> list[tuple[str, str]]:
        """Roles and names, as those hear them who do not see the page."""
        answer = await self.ask("Accessibility.getFullAXTree")
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in answer["nodes"]
            if not node["ignored"]
        ]

    async def picture(self) -> bytes:
        """As PNG."""
        answer = await self.ask("Page.captureScreenshot", format="png")
        return base64.b64decode(answer["data"])


def _complaint(message: dict[str, Any]) -> str:
    method, params = message["method"], message["params"]
    if method == "Runtime.exceptionThrown":
        return json.dumps(params["exceptionDetails"])
    if method == "Runtime.consoleAPICalled" and params["type"] in {"error", "warning", "assert"}:
        return json.dumps(params["args"])
    if method == "Log.entryAdded" and params["entry"]["level"] in {"error", "warning"}:
        return str(params["entry"]["text"])
    return ""


@asynccontextmanager
async def tab(browser: str, *, width: int = 1360, height: int = 860) -> AsyncIterator[Tab]:
    """A new page, with cookies and storage of its own."""
    async with (
        open_websocket_url(browser, max_message_size=1 << 26) as socket,
        trio.open_nursery() as nursery,
    ):
        page = Tab(socket)
        nursery.start_soon(page.listen)
        own = await page.ask("Target.createBrowserContext", disposeOnDetach=True)
        target = await page.ask("Target.createTarget", url="about:blank", **own)
        session = await page.ask("Target.attachToTarget", flatten=True, **target)
        page.session = session["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            await page.ask(f"{domain}.enable")
        await page.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        yield page
        nursery.cancel_scope.cancel()
