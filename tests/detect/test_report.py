"""The report as text, card and JSON."""

import json
import math

import pytest
import torch
from torch import nn

from nanlab.detect.origin.report import SCHEMA, NonFiniteError, Report
from nanlab.detect.replay.hunt import hunt


class Direction(nn.Module):
    def forward(self, x):
        return 2 * (x / x.norm(dim=-1, keepdim=True)) + 1


@pytest.fixture
def report():
    model, x = nn.Sequential(nn.Linear(4, 4, bias=False), Direction()), torch.ones(3, 4)
    x[2] = 0
    return hunt(lambda: model(x).mean(), model, batch=x, step=41, confirm=True)


def test_the_headline_names_form_element_module_file_and_line(report):
    assert report.headline() == f"0/0 at [2, 0], 1, test_report.py:{report.line}"


def test_the_caret_stands_under_the_operation(report):
    line, carets = report.source()
    assert line == "return 2 * (x / x.norm(dim=-1, keepdim=True)) + 1"
    assert line[carets.index("^") : carets.rindex("^") + 1] == "x / x.norm(dim=-1, keepdim=True)"


def test_the_text_has_evidence_suspect_fix_and_lesson(report):
    text = str(report)
    for part in ("step 41, forward, div: 4 nan of 12", "denominator = 0", "operand patched, sample 2 left out",
                 "Keep the operand away from zero", "03_padding_row"):  # fmt: skip
        assert part in " ".join(text.split()), part
    assert max(map(len, text.splitlines())) <= 100


def test_the_json_has_the_schema_first_and_no_bare_nan(report):
    report.operands["weight"] = math.nan
    data = report.to_json()
    assert tuple(data)[: len(SCHEMA)] == SCHEMA and "target" not in data
    assert json.loads(json.dumps(data, allow_nan=False))["operands"]["weight"] == "nan"


def test_the_card_is_labelled_and_escapes_the_source(report):
    report.module = "<script>"
    card = report._repr_html_()
    assert "<script>" not in card and 'aria-label="nanlab: 0/0' in card and "<caption" in card
    assert '<th scope="row"' in card and 'tabindex="0"' in card


@pytest.mark.parametrize(
    ("verdict", "says"),
    [("finite", "Nothing non-finite reached"), ("not-reproduced", "not reproduced"), ("only-when-compiled", "Only")],
)
def test_the_other_verdicts_say_what_they_mean(verdict, says):
    report = Report(verdict, notes=["Because."])
    assert says in str(report) and "Because." in str(report) and says in report._repr_html_()


def test_a_report_without_a_line_says_so():
    assert "an unknown line" in str(Report("non-finite", form="0/0"))


@pytest.mark.parametrize("file", ["/tmp/ipykernel_77/123.py", "<cell>4", "<ipython-input-3-ab>"])
def test_a_cell_is_called_a_cell_whatever_its_file(file):
    assert Report("non-finite", file=file, line=3).place() == "cell, line 3"


def test_the_error_carries_the_report_and_prints_it(report):
    error = NonFiniteError(report)
    assert isinstance(error, ArithmeticError) and error.report is report and error.scene is None
    assert str(error) == str(report)


def test_the_calls_that_led_to_the_line_are_kept_the_nearest_first(report):
    files = {file for file, _ in report.trail}
    assert report.trail and __file__ in files and not any("torch" in file for file in files)
