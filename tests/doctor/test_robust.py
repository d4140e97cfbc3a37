"""Any bytes give a clear answer or a clear error, in work that grows no faster than the input."""

import sys
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanlab.doctor import NotALog, diagnose

VERDICTS = {"fault", "harmless", "no-nan", "unknown"}
WORDS = [
    "step",
    "epoch",
    "loss",
    "nan",
    "inf",
    "=",
    ":",
    "1.5",
    "7/9",
    "[",
    "]",
    "(",
    "|",
    "\r",
    "\n",
    ",",
    "{",
    '"',
    "'",
    "grad_norm",
    "Traceback (most recent call last)",
    'File "x.py", line 3',
    "Error",
    "1e999",
    "-9e999/5",
    "nan/7",
    "-",
    "%|",
    "it/s",
    "rank0",
    "loss scale",
    "\x1b[1m",
    "é",
]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=3000))
def test_any_bytes_are_answered_or_refused(data):
    try:
        answer = diagnose(data)
    except NotALog:
        return
    assert answer.verdict in VERDICTS
    assert str(answer) and answer.to_json() and answer._repr_html_()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=120).map(" ".join))
def test_any_heap_of_telling_words_is_answered(text):
    answer = diagnose(text.encode())
    assert answer.verdict in VERDICTS
    assert all(0 <= suspect.score <= 1 for suspect in answer.suspects)
    assert all(1 <= line <= max(1, answer.lines) for suspect in answer.suspects for line in suspect.lines)
    assert len(answer.ask_for) <= 2


@given(st.text(max_size=200))
@settings(max_examples=100, deadline=None)
def test_a_character_cut_in_two_at_the_end_harms_nothing(text):
    data = ("step 1 loss 2.0\nstep 2 loss nan\n" + text.replace("\n", " ") + "é").encode("utf-8", "replace")[:-1]
    with suppress(NotALog):
        assert diagnose(data).verdict in VERDICTS


MONSTERS = [
    "a",
    "1",
    "nan ",
    "nan",
    ".",
    " ",
    "=",
    "(",
    '"',
    '{"a":',
    "[[1][2]",
    "-",
    "1,",
    "1,000",
    "a@b.",
    "\x1b[",
    "\x1b]",
    "loss: ",
    "x=1 ",
    "eyJ",
    "/home/",
    "1/2 ",
    'File "',
    "0.0.",
    "nan:",
]


@pytest.mark.parametrize("piece", MONSTERS)
def test_the_work_for_one_monstrous_line_does_not_explode(piece):
    """Counted in calls and not in seconds: four times the line, far below sixteen times the calls."""

    def calls(size: int) -> int:
        count = 0

        def tick(frame, event, arg):
            nonlocal count
            count += 1

        text = (piece * (size // len(piece) + 1))[:size].encode()
        sys.setprofile(tick)
        try:
            diagnose(text)
        finally:
            sys.setprofile(None)
        return count

    calls(100)
    assert calls(40_000) < 7 * calls(10_000) + 2000


@pytest.mark.parametrize("piece", MONSTERS)
def test_a_line_of_a_million_characters_is_answered(piece):
    assert diagnose((piece * (1_000_000 // len(piece))).encode()).verdict in VERDICTS
