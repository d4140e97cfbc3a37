"""A JupyterLab of the tests' own, and a real browser that looks at it."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from nanlab.kernels.manager import write_kernelspec

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
OPTIONS += ["--no-first-run", "--disable-component-update", "--disable-sync"]
START_LIMIT = 90_000  # milliseconds for JupyterLab or a kernel to be ready on a busy machine

_PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden)"
_IDLE = """() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"""
_ALL_RUN = """() => { const panel = window.jupyterapp.shell.currentWidget;
  const code = panel.content.widgets.filter(c => c.model.type === 'code' && c.model.sharedModel.source.trim());
  return code.every(c => c.model.executionCount !== null)
    && panel.sessionContext.session.kernel.status === 'idle'; }"""

_OUTPUTS = """() => window.jupyterapp.shell.currentWidget.content.widgets.filter(c => c.model.type === 'code')
  .map(c => c.model.toJSON()).map(c => ({ id: c.id, tags: c.metadata.tags || [], outputs: c.outputs }))"""
_SHOWN = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .filter(c => c.model.type === 'code' && c.model.outputs.length && c.outputArea.node.getClientRects().length)
  .filter(c => c.outputArea.node.innerText.trim() || c.outputArea.node.querySelector('img, svg'))
  .map(c => c.model.id)"""
_PLACE = """id => window.jupyterapp.shell.currentWidget.content.widgets.findIndex(c => c.model.id === id)"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests stay in one worker, with one server; each of them may take a while on a busy machine."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("browser"))
            item.add_marker(pytest.mark.timeout(300))


class Jupyter:
    """A running JupyterLab over `root`, which holds a copy of the course's notebooks."""

    def __init__(self, url: str, root: Path):
        self.url, self.root = url, root


class Notebook:
    """One notebook, open in the browser with an idle kernel. `errors` holds what the page itself threw."""

    def __init__(self, page: Page):
        self.page = page
        self.panel: Locator = page.locator(_PANEL)
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def run_all(self) -> None:
        """Run every cell, top to bottom, and wait for the last one."""
        self.page.evaluate("async () => { await window.jupyterapp.commands.execute('notebook:run-all-cells') }")
        self.page.wait_for_function(_ALL_RUN, timeout=START_LIMIT)

    def outputs(self) -> list[dict]:
        """Each code cell as {"id", "tags", "outputs"}, the outputs as nbformat has them."""
        return self.page.evaluate(_OUTPUTS)

    def shown(self) -> list[str]:
        """The ids of the code cells whose outputs can be seen."""
        return self.page.evaluate(_SHOWN)

    def output(self, id: str) -> Locator:
        """The output area of the cell called `id`."""
        place = self.page.evaluate(_PLACE, id)
        return self.panel.locator(".jp-Cell").nth(place).locator(".jp-Cell-outputArea")

    def close(self) -> None:
        """End its kernel and close its window, unsaved."""
        self.page.evaluate("async () => { await window.jupyterapp.shell.currentWidget.sessionContext.shutdown() }")
        self.page.close()

    def accessibility(self) -> list[str]:
        """What axe finds wrong in the notebook's outputs, of level serious or critical.

        JupyterLab draws a PNG output as an image without alternative text, and gives no way to name one: those
        images are left out. What such a picture shows is said in the text beside it.
        """
        found = Axe().run(self.page, context=f"{_PANEL} .jp-OutputArea-output").response["violations"]
        return [
            f"{violation['id']}: {node['html'][:160]}"
            for violation in found
            if violation["impact"] in ("serious", "critical")
            for node in violation["nodes"]
            if not (violation["id"] == "image-alt" and "data:image/png" in node["html"])
        ]


@pytest.fixture(scope="session")
def jupyter(root: Path, tmp_path_factory) -> Iterator[Jupyter]:
    """JupyterLab on a free port, with settings of its own; ended after the last test."""
    folder = tmp_path_factory.mktemp("jupyter")
    for room in ("notebooks", "exercises"):
        hidden = shutil.ignore_patterns(".*")
        shutil.copytree(root / room, folder / "course" / room, ignore=hidden)
    for plugin, name, settings in (
        ("apputils-extension", "notification", {"fetchNews": "false", "checkForUpdates": False}),
        ("docmanager-extension", "plugin", {"autosave": False}),
        ("notebook-extension", "tracker", {"windowingMode": "none"}),
    ):
        place = folder / "settings" / "@jupyterlab" / plugin
        place.mkdir(parents=True)
        (place / f"{name}.jupyterlab-settings").write_text(json.dumps(settings))
    with _server(folder) as url:
        yield Jupyter(url, folder / "course")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless chromium. Ended with the module: its event loop would stand in the way of others'."""
    if CHROMIUM is None and not os.environ.get("CI"):
        pytest.skip("no chromium here: install it, or name it in $CHROMIUM")
    assert CHROMIUM, "no chromium here, and CI must not do without"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def open_notebook(jupyter: Jupyter, browser: Browser):
    """A function that opens a notebook of ``jupyter.root`` by its path in a fresh page; all are closed at the end."""
    context = browser.new_context(reduced_motion="reduce")  # one for all: JupyterLab itself is then loaded once

    def open_one(path: str, width: int = 1280, height: int = 900) -> Notebook:
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{jupyter.url}/lab/tree/{path}?reset", wait_until="domcontentloaded")
        page.wait_for_selector("#jupyterlab-splash", state="detached", timeout=START_LIMIT)
        expect(page.locator(f"{_PANEL} .jp-Notebook")).to_be_visible(timeout=START_LIMIT)
        page.wait_for_function(_IDLE, timeout=START_LIMIT)
        return Notebook(page)

    yield open_one
    context.close()
    _shut_kernels_down(jupyter.url)


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    own["JUPYTER_PATH"] = str(write_kernelspec(folder / "kernels"))  # warm kernels
    own |= {"NANLAB_HOME": str(folder / "home")}  # answers of these tests alone
    own |= {"JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"), "JUPYTERLAB_WORKSPACES_DIR": str(folder / "spaces")}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True"]
    command += [f"--ServerApp.root_dir={folder / 'course'}", "--LabApp.expose_app_in_browser=True"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, env=os.environ | own, stdout=log, stderr=log, cwd=folder)
    try:
        _wait_for(f"http://127.0.0.1:{port}", server, folder / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_for(url: str, server: subprocess.Popen, log: Path) -> None:
    until = time.monotonic() + START_LIMIT / 1000
    while time.monotonic() < until and server.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/api/status", timeout=2):
            return
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")


def _shut_kernels_down(url: str) -> None:
    with urllib.request.urlopen(f"{url}/api/sessions", timeout=10) as answer:
        sessions = json.load(answer)
    for session in sessions:
        request = urllib.request.Request(f"{url}/api/sessions/{session['id']}", method="DELETE")
        urllib.request.urlopen(request, timeout=30).close()
