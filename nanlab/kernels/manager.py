"""The manager of the kernels that the project's own runs of notebooks use."""

from jupyter_client.manager import AsyncKernelManager


class NotebookKernelManager(AsyncKernelManager):
    """Manages a Python kernel of this interpreter."""
