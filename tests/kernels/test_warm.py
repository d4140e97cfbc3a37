"""Warm kernels behave as fresh ones; each test is something that went wrong in a first sketch."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nanlab.kernels import client, provisioner
from nanlab.kernels.client import WarmProcess, settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="warm kernels are for Linux")


def test_a_kernel_is_forked_from_a_process_that_has_torch_loaded(kernel):
    assert kernel.run("import sys; print('torch._dynamo' in sys.modules, 'matplotlib.pyplot' in sys.modules)") == (
        "True True"
    )
    assert isinstance(kernel.process, client.ForkedKernel)


def test_two_kernels_come_from_one_warm_process(start):
    first, second = start(), start()
    parents = {k.run("import os; print(os.getppid())") for k in (first, second)}
    assert len(parents) == 1 and first.pid != second.pid


def test_main_is_the_notebooks_own(kernel):
    """The starting program's `__main__` is not imported again, and classes of a cell belong to `__main__`."""
    assert kernel.run("import __main__; x = 3; print(__main__.x, getattr(__main__, '__file__', None))") == "3 None"
    assert kernel.run("class A: pass\nprint(A.__module__)") == "__main__"


def test_arguments_are_the_kernels(kernel):
    said = kernel.run("import sys; print(sys.argv[0].endswith('ipykernel_launcher.py'), sys.argv[1])")
    assert said == "True -f"


def test_an_interrupt_ends_what_a_cell_started(kernel):
    """Signals go to the kernel's own group; otherwise `os.system` sits out its sleep."""
    request = kernel.client.execute("import os; os.system('sleep 60')")
    time.sleep(0.7)
    kernel.manager.interrupt_kernel()
    kernel.finish(request, timeout=20)
    assert kernel.run("print('still here')") == "still here"


def test_an_interrupt_stops_a_loop_and_nothing_else(start):
    stopped, other = start(), start()
    request = stopped.client.execute("while True: pass")
    time.sleep(0.5)
    stopped.manager.interrupt_kernel()
    assert stopped.finish(request, timeout=20).startswith("KeyboardInterrupt")
    assert other.run("print(1)") == "1"


def test_the_start_method_of_processes_is_pythons_own(kernel):
    code = "import multiprocessing as m; print(m.get_start_method(allow_none=True), m.current_process().name)"
    fresh = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert kernel.run(code) == fresh
    assert kernel.run("import multiprocessing as m; print(m.parent_process())") == "None"


def test_a_data_loader_with_workers_takes_a_notebooks_class(kernel):
    code = """
import torch
class Squares(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return torch.tensor(i * i)
print([b.tolist() for b in torch.utils.data.DataLoader(Squares(), batch_size=2, num_workers=1)])
"""
    assert kernel.run(code).endswith("[[0, 1], [4, 9]]")


def test_unseeded_code_does_not_reproduce(start):
    code = "import random, numpy, torch; print(random.random(), numpy.random.rand(), torch.rand(1).item())"
    drawn = [start().run(code).split() for _ in range(2)]
    assert all(one != other for one, other in zip(*drawn, strict=True))


def test_two_warm_processes_hash_strings_differently(start, environment):
    """So a stored output that hangs on the order of a set is found out."""
    hashes = {start(env=dict(environment, TORCH_TEST=name)).run("print(hash('nan'))") for name in "ab"}
    assert len(hashes) == 2


def test_figures_are_stored_with_no_magic_before(kernel):
    assert kernel.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()") == "image/png text/plain"
    assert kernel.run("fig, ax = plt.subplots()").startswith("image/png")


def test_another_backend_is_heard(start, environment):
    kernel = start(env=dict(environment, MPLBACKEND="agg"))
    assert kernel.run("import matplotlib; print(matplotlib.get_backend())") == "agg"


def test_the_kernels_environment_is_the_requests(start, environment, tmp_path):
    kernel = start(env=dict(environment, NANLAB_TEST="here", TMPDIR=str(tmp_path)), cwd=str(tmp_path))
    code = "import os, tempfile; print(os.environ['NANLAB_TEST'], os.getcwd() == tempfile.gettempdir())"
    assert kernel.run(code) == "here True"
    assert kernel.run("import sys; print(sys.path.count(''))") == "1"


def test_settings_that_are_read_at_import_get_a_warm_process_of_their_own(start, environment):
    plain = start()
    narrow = start(env=dict(environment, ATEN_CPU_CAPABILITY="default", OMP_NUM_THREADS="1"))
    ask = "import os, torch; print(os.getppid(), torch.backends.cpu.get_cpu_capability(), torch.get_num_threads())"
    assert narrow.run(ask).split()[1:] == ["DEFAULT", "1"]
    assert plain.run(ask).split()[0] != narrow.run(ask).split()[0]


def test_torch_works_on_several_threads_in_a_kernel(kernel):
    """The warm process has run nothing on torch's threads, which a fork would lose."""
    assert (
        kernel.run("import torch; print((torch.ones(600, 600) @ torch.ones(600, 600)).sum().item())") == "216000000.0"
    )
    assert kernel.run("print(torch.cuda._is_in_bad_fork())") == "False"


def test_the_warm_process_itself_has_one_python_thread(kernel):
    kernel.run("1")
    process = next(iter(provisioner._processes.values()))
    tasks = [(task / "comm").read_text().strip() for task in Path(f"/proc/{process.pid}/task").iterdir()]
    assert len(tasks) == 1, tasks


def test_a_kernel_restarts(kernel):
    before = kernel.pid
    kernel.run("x = 1")
    kernel.manager.restart_kernel(now=True)
    kernel.client.wait_for_ready(timeout=60)
    assert kernel.pid != before
    assert kernel.run("print('x' in globals())") == "False"


def test_a_segmentation_fault_is_noticed_and_harms_no_other_kernel(start):
    dying, other = start(), start()
    dying.client.execute("import ctypes; ctypes.string_at(0)")
    assert dying.process.wait(timeout=20) == -signal.SIGSEGV
    assert not dying.manager.is_alive()
    assert other.run("print('alive')") == "alive"


def test_an_exit_status_is_told(kernel):
    kernel.client.execute("import os; os._exit(7)")
    assert kernel.process.wait(timeout=20) == 7


def test_a_kernel_runs_its_exit_functions(kernel, tmp_path):
    kernel.run(f"import atexit, pathlib; atexit.register(pathlib.Path({str(tmp_path / 'end')!r}).write_text, 'said')")
    kernel.manager.shutdown_kernel()
    assert (tmp_path / "end").read_text() == "said"


OWNER = """
import sys, time
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from nanlab.kernels import provisioner
m = KernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[sys.argv[1]]))
m.start_kernel()
print(m.provisioner.process.pid, *[p.pid for p in provisioner._processes.values()], flush=True)
time.sleep(120)
"""


def _owner(specs) -> tuple[subprocess.Popen, list[int]]:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, specs.kernel_dirs[0]], stdout=subprocess.PIPE, text=True)
    pids = [int(word) for word in owner.stdout.readline().split()]
    owner.stdout.close()
    return owner, pids


def test_killing_the_owner_ends_kernel_and_warm_process(specs, gone, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    owner, (kernel, warm) = _owner(specs)
    owner.kill()
    owner.wait()
    assert gone(kernel) and gone(warm)
    assert not list(tmp_path.glob("nanlab-warm-*")), "its socket was left behind"


def test_killing_the_warm_process_ends_its_kernels(specs, gone):
    owner, (kernel, warm) = _owner(specs)
    os.kill(warm, signal.SIGKILL)
    assert gone(kernel)
    owner.kill()
    owner.wait()


def test_a_kernel_that_lost_its_warm_process_is_seen_as_dead(start, environment):
    kernel = start(env=dict(environment, TORCH_TEST="lost"))
    process = next(p for key, p in provisioner._processes.items() if ("TORCH_TEST", "lost") in key)
    os.kill(process.pid, signal.SIGKILL)
    assert kernel.process.wait(timeout=20) == -signal.SIGKILL
    assert start(env=dict(environment, TORCH_TEST="lost")).run("print(1)") == "1"


def test_a_shared_warm_process_is_used_by_those_with_its_settings(start, monkeypatch, environment):
    process = WarmProcess(environment)
    try:
        monkeypatch.setenv(client.SHARED, process.path)
        assert start().run("import os; print(os.getppid())") == str(process.pid)
        other = start(env=dict(environment, TORCH_TEST="shared"))
        assert other.run("import os; print(os.getppid())") != str(process.pid)
    finally:
        process.close()


def test_an_ordinary_kernel_starts_when_the_warm_process_does_not_answer(start, monkeypatch, tmp_path):
    monkeypatch.setenv(client.SHARED, str(tmp_path / "nobody"))
    kernel = start()
    assert isinstance(kernel.process, subprocess.Popen)
    assert kernel.run("print(2)") == "2"


def test_an_ordinary_kernel_starts_on_other_systems(start, monkeypatch):
    monkeypatch.setattr(provisioner.sys, "platform", "darwin")
    kernel = start()
    monkeypatch.undo()
    assert isinstance(kernel.process, subprocess.Popen)


def test_settings_are_what_is_read_at_import():
    assert settings({"OMP_NUM_THREADS": "1", "HOME": "x", "ATEN_CPU_CAPABILITY": "avx2"}) == {
        "ATEN_CPU_CAPABILITY": "avx2",
        "OMP_NUM_THREADS": "1",
    }
