"""A live view beside what a page stores: shown where a kernel runs and ipywidgets is installed."""

from collections.abc import Callable
from typing import Any

_VIEW = "application/vnd.jupyter.widget-view+json"


def with_view(data: dict[str, Any], widget: Callable[[], Any], what: str) -> dict[str, Any]:
    """`data` by MIME type with the view of ``widget()`` added, or with a line that says `what` needs ipywidgets."""
    try:
        data[_VIEW] = {"version_major": 2, "version_minor": 0, "model_id": widget().model_id}
    except ImportError:
        data["text/plain"] += f"\n{what} needs ipywidgets: pip install 'nanlab[course]'"
    return data
