"""Warm kernels to talk to."""

import os
import queue
import time
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning import KernelProvisionerFactory

from nanlab.kernels import manager, provisioner


class Kernel:
    """A warm kernel and what it says."""

    def __init__(self, specs: KernelSpecManager, **start):
        self.manager = KernelManager(kernel_name="python3", kernel_spec_manager=specs)
        self.manager.start_kernel(**start)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    @property
    def process(self):
        return self.manager.provisioner.process

    @property
    def pid(self) -> int:
        return self.process.pid

    def run(self, code: str, timeout: float = 60) -> str:
        """What `code` printed, or the name and value of its error."""
        return self.finish(self.client.execute(code), timeout)

    def finish(self, request: str, timeout: float = 60) -> str:
        said = []
        deadline = time.monotonic() + timeout
        while True:
            message = self.client.get_iopub_msg(timeout=max(0.1, deadline - time.monotonic()))
            content = message["content"]
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "stream":
                said.append(content["text"])
            elif message["msg_type"] == "error":
                said.append(f"{content['ename']}: {content['evalue']}")
            elif message["msg_type"] in ("display_data", "execute_result"):
                said.append(" ".join(sorted(content["data"])))
            elif content.get("execution_state") == "idle":
                return "".join(said).strip()

    def stop(self) -> None:
        self.client.stop_channels()
        if self.manager.has_kernel:
            self.manager.shutdown_kernel(now=True)

    Empty = queue.Empty


@pytest.fixture(scope="session")
def specs(tmp_path_factory) -> KernelSpecManager:
    """A kernel python3 that is a warm one."""
    entries = KernelProvisionerFactory.instance().provisioners
    assert manager.PROVISIONER in entries, "nanlab's entry points are not installed: run 'pip install -e .'"
    folder = manager.write_kernelspec(tmp_path_factory.mktemp("specs"))
    return KernelSpecManager(kernel_dirs=[str(folder / "kernels")], ensure_native_kernel=False)


@pytest.fixture
def start(specs):
    """Starts warm kernels and ends them after the test."""
    kernels = []

    def start_one(**start) -> Kernel:
        kernels.append(Kernel(specs, **start))
        return kernels[-1]

    yield start_one
    for kernel in kernels:
        kernel.stop()


@pytest.fixture
def kernel(start) -> Kernel:
    return start()


@pytest.fixture(scope="session", autouse=True)
def _end_warm_processes():
    yield
    provisioner._close()


def is_running(pid: int) -> bool:
    """True while there is a process `pid` that is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def gone():
    """Waits until a process has ended; False when it has not after `within` seconds."""

    def wait(pid: int, within: float = 20) -> bool:
        deadline = time.monotonic() + within
        while is_running(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        return not is_running(pid)

    return wait


@pytest.fixture
def environment():
    """The environment of this process, to be changed for a kernel."""
    return dict(os.environ)
