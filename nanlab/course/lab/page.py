"""The HTML around a lab's picture: one style sheet, the status sentence, a table."""

from collections.abc import Sequence
from html import escape

STYLE = """<style>
.nanlab-lab { max-width: 680px; padding: 4px 0 8px; }
.nanlab-lab .widget-html-content { line-height: 1.45; }
.nanlab-lab .nanlab-field { flex-direction: column; align-items: flex-start; width: auto; height: auto;
  min-width: 88px; }
.nanlab-lab .nanlab-field > .widget-label { height: 22px; line-height: 22px; text-align: left; font-size: 13px;
  color: var(--jp-content-font-color1, #222); }
.nanlab-lab .nanlab-field > input { width: 0; min-width: 100%; flex: 0 0 auto; box-sizing: border-box;
  font-variant-numeric: tabular-nums; }
.nanlab-lab .nanlab-field > select { width: 100%; height: 28px; flex: 0 0 auto; }
.nanlab-lab .nanlab-log textarea { height: 150px; width: 100%; box-sizing: border-box;
  font-family: var(--jp-code-font-family, monospace);
  font-size: 12px; }
.nanlab-lab .jupyter-button.nanlab-step { padding: 0; width: 28px; height: 28px; }
.nanlab-lab .nanlab-buttons > .widget-label { width: 100%; height: 22px; line-height: 22px; font-size: 13px;
  color: var(--jp-content-font-color1, #222); }
.nanlab-lab .nanlab-invalid input { border: 2px solid #d55e00; }
.nanlab-lab .nanlab-message { min-height: 18px; font-size: 12px; line-height: 18px; max-width: 176px; }
.nanlab-lab .nanlab-quiet { color: var(--jp-ui-font-color1, #444); opacity: .85; }
.nanlab-lab .nanlab-bad { color: #a34700; background: #fdeee4; border-radius: 2px; padding: 0 6px; }
.nanlab-lab .nanlab-sentence { font-size: 14px; padding: 6px 2px; color: var(--jp-content-font-color1, #222); }
.nanlab-lab .jupyter-button { white-space: normal; height: auto; min-height: 28px; line-height: 1.3; padding: 4px 10px;
  color: var(--jp-ui-font-color1, #222); }
.nanlab-lab .jupyter-button:focus-visible, .nanlab-lab input:focus-visible, .nanlab-lab select:focus-visible,
.nanlab-lab textarea:focus-visible { outline: 2px solid #0072b2; outline-offset: 1px; }
.nanlab-lab table { border-collapse: collapse; font-size: 13px; margin: 4px 0;
  color: var(--jp-content-font-color1, #222); }
.nanlab-lab th, .nanlab-lab td { padding: 3px 12px; text-align: right; font-variant-numeric: tabular-nums;
  border-bottom: 1px solid var(--jp-border-color2, #ddd); }
.nanlab-lab th:first-child, .nanlab-lab td:first-child { text-align: left; }
</style>"""


def sentence(text: str) -> str:
    """`text` as the lab's status line: a screen reader speaks it when it changes."""
    return f'<div class="nanlab-sentence" role="status" aria-live="polite">{escape(text)}</div>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An HTML table with column headings."""
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
