"""A real Chromium that opens a page as a person would, and tells what it did.

    page, screen -> Opened; expressions -> values

Headless, driven by its DevTools protocol over loopback, with a profile of its own.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
START_SECONDS = 120.0
ANSWER_SECONDS = 120.0
FLAGS = (
    *("--headless", "--remote-debugging-port=0", "--no-first-run", "--hide-scrollbars"),
    *("--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-default-browser-check"),
    "--no-sandbox",  # root has none, nor has a kernel without user namespaces; the pages are ours
)


@cache
def chromium() -> str | None:
    """Return the Chromium of this machine, None if it has none that starts."""
    return next(filter(_starts, filter(None, map(shutil.which, NAMES))), None)


def _starts(program: str) -> bool:
    """Return whether *program* is a browser: Ubuntu has a script there that says where it is."""
    argv = [program, "--version"]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What a page is opened on."""

    width: int = 1100
    height: int = 900
    is_dark: bool = False
    is_phone: bool = False
    media: str = ""
    """`print`, or empty for a screen."""


@dataclass(slots=True)
class Tab:
    """One page in the browser and what it said since it was opened."""

    socket: aiohttp.ClientWebSocketResponse
    session: str = ""
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """Errors and warnings of the console, exceptions, dialogs."""
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _answers: dict[int, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)
    _events: dict[str, asyncio.Future[None]] = field(default_factory=dict)

    async def listen(self) -> None:
        """Take what the browser says until it ends."""
        async for message in self.socket:
            document = message.json()
            if "id" in document:
                self._answers.pop(document["id"]).set_result(document)
                continue
            self._note(document["method"], document["params"])
            if (waiting := self._events.pop(document["method"], None)) is not None:
                waiting.set_result(None)

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return what the browser answers to *method*."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        document = {"id": number, "method": method, "params": parameters}
        if self.session:
            document["sessionId"] = self.session
        await self.socket.send_json(document)
        found = await asyncio.wait_for(answer, ANSWER_SECONDS)
        assert "error" not in found, f"{method}: {found['error']}"
        result: dict[str, Any] = found["result"]
        return result

    async def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript *expression* in the page."""
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def press(self, key: str) -> None:
        """Press and release *key*."""
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    async def show(self, path: Path, screen: Screen) -> None:
        """Open the file at *path* on *screen* and wait until it is loaded."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=screen.width,
            height=screen.height,
            deviceScaleFactor=2 if screen.is_phone else 1,
            mobile=screen.is_phone,
        )
        scheme = "dark" if screen.is_dark else "light"
        await self.call(
            "Emulation.setEmulatedMedia",
            media=screen.media,
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        loaded = self._events["Page.loadEventFired"] = asyncio.get_running_loop().create_future()
        await self.call("Page.navigate", url=path.as_uri())
        await asyncio.wait_for(loaded, ANSWER_SECONDS)

    async def picture(self) -> bytes:
        """Return the whole page as a PNG."""
        found = await self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(found["data"])

    def _note(self, method: str, parameters: dict[str, Any]) -> None:
        match method:
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
            case "Runtime.consoleAPICalled":
                self.complaints.append(f"console: {parameters['args']}")
            case "Runtime.exceptionThrown":
                self.complaints.append(f"exception: {parameters['exceptionDetails']}")
            case "Log.entryAdded":
                self.complaints.append(f"log: {parameters['entry']}")
            case "Page.javascriptDialogOpening":
                self.complaints.append(f"dialog: {parameters['message']}")


@asynccontextmanager
async def opened_tab() -> AsyncIterator[Tab]:
    """Start a Chromium with one empty tab; it ends with the block."""
    program = chromium()
    assert program is not None
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            *(program, *FLAGS, f"--user-data-dir={profile}", "about:blank"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            assert process.stderr is not None
            url = await asyncio.wait_for(_url(process.stderr), START_SECONDS)
            draining = asyncio.create_task(process.stderr.read())
            async with (
                aiohttp.ClientSession() as client,
                client.ws_connect(url, max_msg_size=0) as socket,
            ):
                tab = Tab(socket)
                listening = asyncio.create_task(tab.listen())
                await _attach(tab)
                yield tab
                session, tab.session = tab.session, ""
                assert session
                await tab.call("Browser.close")
                await asyncio.wait_for(process.wait(), ANSWER_SECONDS)
                await listening
            await draining
        finally:
            with suppress(ProcessLookupError):  # its helpers have ended too
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _url(stream: asyncio.StreamReader) -> str:
    """Return the address that the browser says it listens at."""
    async for line in stream:
        text = line.decode(errors="replace")
        if "DevTools listening on " in text:
            return text.split("DevTools listening on ")[1].strip()
    raise AssertionError("Chromium ended before it listened")


async def _attach(tab: Tab) -> None:
    target = await tab.call("Target.createTarget", url="about:blank")
    attached = await tab.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
    tab.session = attached["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Network"):
        await tab.call(f"{domain}.enable")
