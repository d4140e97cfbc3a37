"""The one look of every figure: colours, sizes and line styles. Used by all charts of the course.

Colours are Okabe and Ito's, made to be told apart with any kind of colour vision (Okabe & Ito 2008, "Color Universal
Design"); line patterns and point shapes differ as well, so that a figure reads in grey. Every picture brings its own
white ground: it reads the same in a light and in a dark theme.
"""

WIDTH, HEIGHT = 640, 340  # pixels; fits beside the prompt of a notebook cell in a window of 800 pixels

GROUND = "#ffffff"
INK = "#222222"  # text and axis lines
QUIET = "#595959"  # tick labels: 7:1 on white
GRID = "#e3e3e3"
EDGE = "#c8c8c8"
DANGER = "#d55e00"  # Okabe-Ito vermillion, kept for limits and for what is not finite
DANGER_TEXT = "#a34700"  # the same hue, dark enough for text: 6:1 on white
DANGER_WASH = "#fdeee4"

SERIES = ("#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DASHES = ((), (7, 3), (2, 3), (9, 3, 2, 3), (4, 2), (1, 2))
POINTS = ("circle", "square", "diamond", "triangle", "circle", "square")

FILLS = {  # cells of a Grid: what they say -> (ground, text)
    "plain": ("#ffffff", INK),
    "sign": ("#cc79a7", "#000000"),
    "exponent": ("#56b4e9", "#000000"),
    "mantissa": ("#f3d58a", "#000000"),
    "good": ("#d5efe6", INK),
    "bad": ("#fbdcc6", DANGER_TEXT),
    "quiet": ("#f2f2f2", QUIET),
    "head": ("#ffffff", QUIET),
}

TITLE_SIZE, LABEL_SIZE, TICK_SIZE = 15, 13, 12  # pixels


def text_width(text: str, size: float) -> float:
    """About how many pixels `text` takes, from the mean width of a sans-serif letter."""
    return 0.57 * size * len(text)
