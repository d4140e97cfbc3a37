"""The kernels that the project's own runs of notebooks use: warm where that is possible."""

import atexit
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import KernelProvisionerFactory
from traitlets import default

PROVISIONER = "nanlab-warm"


def write_kernelspec(folder: Path, arguments: Sequence[str] = ()) -> Path:
    """Write a kernel python3, of this interpreter, below `folder`; with ``JUPYTER_PATH=folder`` Jupyter finds it.

    It is started with `arguments`; a warm one where nanlab's entry point is installed, an ordinary one otherwise.
    """
    spec: dict[str, object] = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", *arguments],
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
    }
    if PROVISIONER in KernelProvisionerFactory.instance().provisioners:
        spec["metadata"] = {"kernel_provisioner": {"provisioner_name": PROVISIONER, "config": {}}}
    place = folder / "kernels" / "python3"
    place.mkdir(parents=True, exist_ok=True)
    (place / "kernel.json").write_text(json.dumps(spec, indent=1) + "\n", encoding="utf-8")
    return folder


class NotebookKernelManager(AsyncKernelManager):
    """Manages a Python kernel of this interpreter, whatever kernels the user has installed."""

    @default("kernel_spec_manager")
    def _own_kernelspecs(self) -> KernelSpecManager:
        return KernelSpecManager(kernel_dirs=[_kernelspecs()], ensure_native_kernel=False)


@cache
def _kernelspecs() -> str:
    """The folder of this process's kernelspecs, which goes when the process ends."""
    folder = tempfile.mkdtemp(prefix="nanlab-kernels-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return str(write_kernelspec(Path(folder)) / "kernels")
