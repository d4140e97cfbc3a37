"""The plotting area of a chart: from values to pixels. Curves lie on tenths of pixels, or they look kinked."""

from dataclasses import dataclass

from nanlab.plots.axis import Axis


@dataclass(frozen=True)
class Frame:
    """The plotting area in pixels and the axes across it. `strips` says how high "inf" and "nan" stand, where there are
    any."""

    left: int
    top: int
    right: int
    bottom: int
    x_axis: Axis
    y_axis: Axis
    strips: dict[str, int]

    def x(self, value: float) -> float:
        """Where `value` lies across; ValueError for what the axis has no place for."""
        return round(self.left + self.x_axis.place(value) * (self.right - self.left), 1)

    def y(self, value: float) -> float:
        """How high `value` lies; ValueError for what the axis has no place for."""
        return round(self.bottom - self.y_axis.place(value) * (self.bottom - self.top), 1)
