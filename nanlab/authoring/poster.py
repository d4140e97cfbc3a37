"""Make the poster: one A4 page from the table of suspects, symptom → suspect → first move. ``nanlab author poster``."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from nanlab import suspects
from nanlab.suspects import Suspect

if TYPE_CHECKING:
    from fpdf import FPDF

PLACE = Path("notebooks/poster.pdf")
TITLE = "The loss is nan. Now what?"
STEPS = (
    ("Stop.", "Keep the batch, the weights before the step, the optimizer's state and the random state. Don't resume."),
    ("Replay", "that one step until it fails again. Then walk forward to the first value that is not finite."),
    ("Say why", "that operation made it: overflow, x/0, 0/0, inf − inf, 0 × inf, log or root of a negative."),
    ("Change one thing,", "and see the step come out finite and right. Then mend it at the source."),
)
FOOT = "**nanlab hunt train.py** finds the line, **nanlab diagnose train.log** reads what is left."
HEADINGS = ("What you see", "Suspect", "First move")
WIDTHS = (30, 17, 53)  # hundredths of the table
MARGIN, SIZE, LINE = 12, 8.8, 4.15  # millimetres, points, millimetres: what lets every row stand on one page
WHEN = datetime(2025, 1, 1, tzinfo=UTC)  # a fixed date, so that the same table gives the same bytes


class PosterError(Exception):
    """The poster could not be made; the message says why."""


def make(path: Path) -> None:
    """Write the poster to `path` as a PDF of one A4 page.

    Raises PosterError without fpdf2 or matplotlib (whose typeface is used), and when the table has outgrown the page.
    """
    page = _page()
    _head(page)
    _table(page, [row for row in suspects.table() if row.kind == "fault"], HEADINGS)
    page.ln(2)
    harmless = [row for row in suspects.table() if row.kind == "harmless"]
    _table(page, harmless, ("Looks like it and is not", *HEADINGS[1:]))
    page.ln(2)
    page.multi_cell(0, LINE, FOOT, markdown=True)
    if page.page > 1:
        raise PosterError(f"the table of suspects fills {page.page} pages: shorten a row, or the type in {__name__}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(page.output()))


def _page() -> "FPDF":
    try:
        from fpdf import FPDF
        from matplotlib import get_data_path
    except ImportError as missing:
        raise PosterError(f"the poster needs {missing.name}: pip install 'nanlab[site]'") from None
    page = FPDF(format="A4")
    fonts = Path(get_data_path(), "fonts/ttf")
    page.add_font("text", "", fonts / "DejaVuSans.ttf")
    page.add_font("text", "B", fonts / "DejaVuSans-Bold.ttf")
    page.set_creation_date(WHEN)
    page.set_title(TITLE)
    page.set_lang("en")
    page.set_margin(MARGIN)
    page.set_auto_page_break(True, MARGIN)
    page.add_page()
    return page


def _head(page: "FPDF") -> None:
    from fpdf.enums import XPos, YPos

    page.set_font("text", "B", 22)
    page.cell(0, 10, TITLE, new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    page.set_font("text", "", SIZE + 1)
    for number, (what, rest) in enumerate(STEPS, start=1):
        step = f"{number}. **{what}** {rest}"
        page.multi_cell(0, LINE + 1, step, markdown=True, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    page.ln(2)


def _table(page: "FPDF", rows: list[Suspect], headings: tuple[str, ...]) -> None:
    page.set_font("text", "", SIZE)
    with page.table(
        col_widths=WIDTHS, line_height=LINE, padding=(0.7, 1), text_align="LEFT", borders_layout="HORIZONTAL_LINES",
        markdown=True,
    ) as table:  # fmt: skip
        table.row(headings)
        for row in rows:
            table.row((row.plain_see, f"**{row.title}**", row.first_move))
