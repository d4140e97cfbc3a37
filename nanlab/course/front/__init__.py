"""The front end of labs, questions and the map of the course: controls, a picture and one sentence, as one view.

It stands on anywidget; without it the same form is built of plain ipywidgets, which know fewer keys.
"""

from collections.abc import Callable


def front(form: dict, asked: Callable[[dict], None]):
    """The live view of `form` (see ``form.form``), with a method ``show(picture, map, **shown)``.

    `asked` is called with every act of the learner: {"name", "text"}, {"step", "up"}, {"slide", "rung"}, {"cell"},
    {"map"}, {"stop"}, or {"press", "texts"}. ImportError where ipywidgets is missing too.
    """
    try:
        from nanlab.course.front.component import Component
    except ImportError:
        from nanlab.course.front.plain import Plain

        return Plain(form, asked)
    return Component(form, asked)
