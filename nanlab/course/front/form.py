"""What a view is made of, as plain data that goes to the browser once."""

from collections.abc import Sequence


def form(
    kind: str,
    controls: Sequence[dict] = (),
    buttons: Sequence[str] = (),
    *,
    head: str = "",
    buttons_label: str = "",
    live: bool = True,
    map: dict | None = None,
) -> dict:
    """`kind` is "lab", "question" or "page"; `head` is HTML; with `live` every entry is sent as it is typed, without it
    all of them come with the press of a button."""
    return {
        "kind": kind,
        "head": head,
        "controls": list(controls),
        "buttons": list(buttons),
        "buttons_label": buttons_label,
        "live": live,
        "map": map,
    }


def control(kind: str, name: str, label: str, **more) -> dict:
    """One control; `kind` is "number" (`rungs`), "text" or "area" (`placeholder`), "select" or "radio" (`options`)."""
    return {"kind": kind, "name": name, "label": label, "hint": "", **more}


def state(
    text: str = "", message: str = "", *, bad: bool = False, moves: int = 1, rung: int = 0, said: str = ""
) -> dict:
    """What a control shows. `text` goes into the field only when `moves` has changed, so that nobody who types is
    written over; `rung` and `said` are where its slider stands and how that is read out."""
    return {"text": text, "message": message, "bad": bad, "moves": moves, "rung": rung, "said": said}


def button(pressed: bool | None = None, hidden: bool = False) -> dict:
    """What a button shows; `pressed` is None for one that has no state."""
    return {"pressed": pressed, "hidden": hidden}
