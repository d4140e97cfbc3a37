"""Pictures of a whisper that goes round a circle, for the beginner's lesson 06 and its lab."""

import torch

from nanlab.course.history import first_nonfinite
from nanlab.lessons.recurrent.whisper import pass_on
from nanlab.plots import Chart, Limit, Mark, Series


def circle(*times: float, people: int = 100) -> Chart:
    """How loud the message is at each of `people`, a curve for each of `times`, on a log axis."""
    rounds = [pass_on(factor, people) for factor in times]
    names = ("loudness",) if len(times) == 1 else tuple(f"{factor:g} times as loud" for factor in times)
    bad = first_nonfinite(max(rounds, key=lambda heard: heard[-1]))
    near = all(1e-5 <= loudness <= 1e5 for heard in rounds for loudness in heard)
    first = (Limit(1.0, "as loud as the first"),) if len(times) == 1 else ()
    return Chart(
        "How loud the message is, person by person",
        "person",
        "loudness",
        tuple(Series(name, heard, range(1, people + 1)) for name, heard in zip(names, rounds, strict=True)),
        limits=(*first, Limit(torch.finfo(torch.float32).max, "end of the box")),
        marks=() if bad is None else (Mark(bad + 1, f"does not fit from person {bad + 1} on"),),
        y_log=True,
        plain=True,
        y_range=(1e-5, 1e5) if near else None,  # the same view for small changes, so that they can be compared
    )
