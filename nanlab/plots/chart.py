"""Charts: curves and bars on one pair of axes, with the limits of number formats and the first bad step drawn in.

Used by every lesson. `description` says what is in one, `layout` places it, `svg` and `png` draw it.
"""

from nanlab.plots.description import Description
from nanlab.plots.layout import place
from nanlab.plots.shapes import Picture
from nanlab.plots.show import Figure
from nanlab.plots.words import describe


class Chart(Description, Figure):
    """One figure; its arguments are the fields of `Description`. As the last expression of a cell it shows as a PNG,
    with a text that says the same."""

    def picture(self) -> Picture:
        return place(self)

    def words(self) -> str:
        return describe(self)
