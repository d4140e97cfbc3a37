"""nanlab finds the first non-finite value of a training run and says why it came.

Public names load when first used, so that ``import nanlab`` is quick and pulls in nothing that a caller does not need.
"""

from importlib import import_module

_HOME = {  # public name -> the module that defines it
    "suspects": "nanlab.suspects",
    "formats": "nanlab.formats",
    "guard": "nanlab.detect.guarding.guard",
    "watch": "nanlab.detect.guarding.watch",
    "hunt": "nanlab.detect.replay.hunt",
    "audit": "nanlab.detect.state.audit",
    "Scene": "nanlab.detect.replay.scene",
    "Report": "nanlab.detect.origin.report",
    "NonFiniteError": "nanlab.detect.origin.report",
    "diagnose": "nanlab.doctor",
    "predict": "nanlab.course.predict",
    "progress": "nanlab.course.progress",
    "lessons": "nanlab.lessons",
    "plots": "nanlab.plots",
    "integrations": "nanlab.detect.integrations",
}
_MODULES = {"integrations", "suspects", "formats", "lessons", "plots"}

__all__ = sorted([*_HOME, "load_ipython_extension"])


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'nanlab' has no attribute {name!r}")
    module = import_module(_HOME[name])
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


def load_ipython_extension(shell) -> None:
    """``%load_ext nanlab`` brings the ``%%hunt`` cell magic."""
    from nanlab.detect.magic import register

    register(shell)
