"""Key press to new pixels in the explosion lab, beside the same run and plot through matplotlib in an Output widget.

Starts JupyterLab on the loopback and a headless chromium, types into the learning-rate field of both, and takes in the
browser itself the time from the key's event to the frame after the new picture stands. Needs ``nanlab[course]`` and
``nanlab[test]``, and chromium at the path in ``$CHROMIUM`` (``/usr/bin/chromium``).

    python benchmarks/lab_latency.py [--keys 60]
"""

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import nbformat
from playwright.sync_api import Page, sync_playwright

OURS = "from nanlab.lessons.loss_explosion import ExplosionLab\nlab = ExplosionLab()\nlab"
THEIRS = """\
import io, ipywidgets as w, matplotlib, torch
matplotlib.use("agg")
import matplotlib.pyplot as plt
from IPython.display import Image, display
from nanlab.lessons import loss_explosion

field, out = w.Text("0.1", description="rate"), w.Output()

def draw(_=None):
    history = loss_explosion.run(float(field.value), steps=12)
    figure, axes = plt.subplots(figsize=(6.4, 3.4))
    axes.semilogy(history.loss, "o-", label="loss")
    axes.semilogy(history.gradient_norm, "s--", label="gradient norm")
    axes.axhline(torch.finfo(torch.float32).max, ls="--")
    axes.set(xlabel="step", ylabel="loss, gradient norm", title="Loss, step by step")
    axes.legend()
    buffer = io.BytesIO()
    figure.savefig(buffer)
    data = buffer.getvalue()
    with out:
        out.clear_output(wait=True)
        display(Image(data))
    plt.close(figure)

field.observe(draw, "value")
draw()
w.VBox([field, out])"""

# From a key's event to the frame after the picture is another one and, for an image, was decoded.
WATCH = """([input, scope]) => {
  const seen = { times: [] }; let start = null, old = null;
  const picture = () => document.querySelector(scope + ' img, ' + scope + ' svg[role=img]');
  const face = p => p && (p.src || p.outerHTML);
  document.querySelector(input).addEventListener('keydown', () => {
    old = face(picture()); start = performance.now(); }, true);
  const shown = () => requestAnimationFrame(() => { const after = new MessageChannel();
    after.port1.onmessage = () => { if (start !== null) { seen.times.push(performance.now() - start); start = null; } };
    after.port2.postMessage(0); });
  new MutationObserver(() => {
    const now = picture();
    if (start === null || !now || face(now) === old) return;
    if (now.decode) { now.decode().then(shown, () => {}); } else { shown(); }
  }).observe(document.querySelector(scope), { childList: true, subtree: true });
  window.nanlabSeen = seen;
}"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=60)
    keys = parser.parse_args().keys
    with tempfile.TemporaryDirectory() as folder, jupyterlab(Path(folder)) as url, chromium() as page:
        results = {name: measure(page, url, name, keys) for name in ("ours", "theirs")}
    labels = {"ours": "nanlab lab, a component of its own", "theirs": "matplotlib in an Output widget"}
    for name, times in results.items():
        median, least = statistics.median(times), min(times)
        print(f"{labels[name]:32}  median {median:6.1f} ms   min {least:6.1f} ms   ({len(times)} keys)")
    print(f"ratio of the medians: {statistics.median(results['theirs']) / statistics.median(results['ours']):.1f}")
    return 0


def measure(page: Page, url: str, name: str, keys: int) -> list[float]:
    """Milliseconds for each of `keys` key presses in the notebook `name`, after ten that do not count."""
    page.goto(f"{url}/lab/tree/{name}.ipynb?reset", wait_until="domcontentloaded")
    page.wait_for_selector("#jupyterlab-splash", state="detached", timeout=60_000)
    page.wait_for_function(
        "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'",
        timeout=60_000,
    )
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    scope = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-OutputArea-output"
    field = f"{scope} input[type=text]"
    page.wait_for_selector(field, timeout=60_000)
    page.wait_for_selector(f"{scope} img, {scope} svg[role=img]", timeout=60_000)
    time.sleep(1.0)
    page.evaluate(WATCH, [field, scope])
    page.locator(field).first.focus()
    page.keyboard.press("End")
    for n in range(keys + 10):
        before = page.evaluate("() => window.nanlabSeen.times.length")
        page.keyboard.press("5" if n % 2 == 0 else "Backspace")
        page.wait_for_function(f"() => window.nanlabSeen.times.length > {before}", timeout=20_000)
        time.sleep(0.15)
    return page.evaluate("() => window.nanlabSeen.times")[10:]


@contextlib.contextmanager
def jupyterlab(folder: Path):
    """JupyterLab with both notebooks and none of the user's own settings, on a free port of the loopback."""
    root = folder / "notebooks"
    root.mkdir()
    for name, source in (("ours", OURS), ("theirs", THEIRS)):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, root / f"{name}.ipynb")
    settings = folder / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    own = {f"JUPYTER_{place}": str(folder / place.lower()) for place in places}
    own |= {"JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"), "JUPYTERLAB_WORKSPACES_DIR": str(folder / "spaces")}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--port-retries=0"]
    command += ["--ip=127.0.0.1", "--IdentityProvider.token=", f"--ServerApp.root_dir={root}"]
    command += ["--LabApp.expose_app_in_browser=True"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, env=os.environ | own, stdout=log, stderr=log, cwd=root)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url, server, folder / "log")
        yield url
    finally:
        server.terminate()
        server.wait(20)


def _wait(url: str, server: subprocess.Popen, log: Path) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{url}/api/status", timeout=1).read()
            return
        if server.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")


@contextlib.contextmanager
def chromium():
    """A page of a headless chromium that talks to the loopback alone."""
    options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=path, args=[*options, "--no-first-run"])
        yield browser.new_page(viewport={"width": 1280, "height": 900})
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
